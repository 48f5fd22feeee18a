/**
 * A binary heap with access to its first member and removal of any member. Adding and deleting take at most log n steps, so a waiter
 * among many costs little more than one among a few.
 */

/** Members ordered by a number that must not change while they are in the heap. */
export class Heap<Member> {
  readonly #rankOf: (member: Member) => number;
  #members: Member[] = [];
  /** Undefined while the heap is empty: a client has a heap for each key that it holds, and most of them stay empty. */
  #indexes: Map<Member, number> | undefined;

  /** @param rankOf returns the rank; the lowest comes first */
  constructor(rankOf: (member: Member) => number) {
    this.#rankOf = rankOf;
  }

  get size(): number {
    return this.#members.length;
  }

  /** The member with the lowest rank. */
  get first(): Member | undefined {
    return this.#members[0];
  }

  /** All members; the order says nothing. */
  get members(): readonly Member[] {
    return this.#members;
  }

  /** Adds a member that is not in the heap yet. */
  add(member: Member): void {
    this.#rise(this.#members.length, member);
  }

  /** Removes the member. Returns true if it was in the heap. */
  delete(member: Member): boolean {
    const index = this.#indexes?.get(member);
    if (index === undefined) return false;
    this.#indexes?.delete(member);
    const last = this.#members.pop() as Member;
    if (last !== member) this.#settle(index, last);
    if (this.#members.length === 0) {
      this.#members = [];
      this.#indexes = undefined;
    }
    return true;
  }

  /** Places `member` at `index`, or moves it up or down to its position. */
  #settle(index: number, member: Member): void {
    const rank = this.#rankOf(member);
    const parent = this.#members[(index - 1) >> 1];
    if (index > 0 && parent !== undefined && this.#rankOf(parent) > rank) return this.#rise(index, member);
    let at = index;
    for (let child = this.#lowerChild(at); child !== undefined; child = this.#lowerChild(at)) {
      const below = this.#members[child] as Member;
      if (this.#rankOf(below) >= rank) break;
      this.#put(at, below);
      at = child;
    }
    this.#put(at, member);
  }

  #rise(index: number, member: Member): void {
    const rank = this.#rankOf(member);
    let at = index;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = this.#members[parent] as Member;
      if (this.#rankOf(above) <= rank) break;
      this.#put(at, above);
      at = parent;
    }
    this.#put(at, member);
  }

  #lowerChild(index: number): number | undefined {
    const left = 2 * index + 1;
    const right = left + 1;
    if (left >= this.#members.length) return undefined;
    if (right >= this.#members.length) return left;
    return this.#rankOf(this.#members[right] as Member) < this.#rankOf(this.#members[left] as Member) ? right : left;
  }

  #put(index: number, member: Member): void {
    this.#members[index] = member;
    (this.#indexes ??= new Map()).set(member, index);
  }
}
