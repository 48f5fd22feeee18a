/**
 * The replacement of the AWS SDK in the simulation's bundle: its exceptions, and commands that carry their input to
 * their client. The SDK's own work for one command takes longer than everything else in a request.
 */
import type { Input } from "./table.js";

/** The metadata of every response. */
interface Metadata {
  attempts?: number;
  httpStatusCode?: number;
}

/** An error response, with the name that the service gave it. */
export class DynamoDBServiceException extends Error {
  readonly $metadata: Metadata;
  constructor({ name, message, $metadata }: { readonly name: string; readonly message: string; readonly $metadata: Metadata }) {
    super(message);
    this.name = name;
    this.$metadata = $metadata;
  }
}

/** The condition was false. */
export class ConditionalCheckFailedException extends DynamoDBServiceException {
  readonly Item: unknown;
  constructor({ Item, ...error }: { readonly message: string; readonly $metadata: Metadata; readonly Item?: unknown }) {
    super({ ...error, name: "ConditionalCheckFailedException" });
    this.Item = Item;
  }
}

/** The transaction did not happen. */
export class TransactionCanceledException extends DynamoDBServiceException {
  readonly CancellationReasons: unknown;
  constructor({
    CancellationReasons,
    ...error
  }: {
    readonly message: string;
    readonly $metadata: Metadata;
    readonly CancellationReasons: unknown;
  }) {
    super({ ...error, name: "TransactionCanceledException" });
    this.CancellationReasons = CancellationReasons;
  }
}

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
