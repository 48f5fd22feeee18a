/**
 * The replacement of the AWS SDK in the simulation's bundle: commands that carry their input to their client. The SDK's own work for one
 * command takes longer than everything else in a request.
 */
import type { Input } from "../../../lib/testing/table/table.js";

class Command {
  constructor(
    readonly operation: string,
    readonly input: Input,
  ) {}
}

/** Reads an item. */
export class GetCommand extends Command {
  constructor(input: Input) {
    super("GetItem", input);
  }
}

/** Writes an item. */
export class UpdateCommand extends Command {
  constructor(input: Input) {
    super("UpdateItem", input);
  }
}

/** Reads a page of items. */
export class QueryCommand extends Command {
  constructor(input: Input) {
    super("Query", input);
  }
}

/** Writes several items or none. */
export class TransactWriteCommand extends Command {
  constructor(input: Input) {
    super("TransactWriteItems", input);
  }
}

/** A class that no client of the simulation is an instance of, so their requests go through them. */
export class DynamoDBClient {
  readonly config = {};
}

/** Uses plain values, like the simulation's clients. */
export const DynamoDBDocumentClient = {
  from: <C>(client: C): C => client,
};
