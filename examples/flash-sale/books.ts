/** The books of a sale: the table's content after the sale, and a check that it is consistent. Pure. */
import type { Shelf } from "./stock.js";

/** The totals of a sale, over all products. */
export interface Books {
  /** Pieces before the sale. */
  readonly stocked: number;
  readonly left: number;
  readonly sold: number;
  /** The pieces sold in excess of the fall in stock. */
  readonly oversold: number;
  /** Sales of a piece that another buyer had already bought. */
  readonly soldTwice: number;
  /** Sales to a buyer who had already bought. */
  readonly servedTwice: number;
}

/** Computes the books of `shelves` that held `piecesEach` before the sale. */
export function booksOf(shelves: readonly Shelf[], piecesEach: number): Books {
  const stocked = piecesEach * shelves.length;
  const left = sum(shelves.map((shelf) => shelf.left));
  const sold = sum(shelves.map(({ sales }) => sales.length));
  const pieces = sum(shelves.map(({ sales }) => new Set(sales.map(({ piece }) => piece)).size));
  const buyers = new Set(shelves.flatMap(({ sales }) => sales.map(({ buyer }) => buyer))).size;
  return { stocked, left, sold, oversold: sold - (stocked - left), soldTwice: sold - pieces, servedTwice: sold - buyers };
}

/** True if everything was sold, each piece once, to as many buyers. */
export function isExact({ stocked, left, sold, oversold, soldTwice, servedTwice }: Books): boolean {
  return left === 0 && sold === stocked && oversold === 0 && soldTwice === 0 && servedTwice === 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
