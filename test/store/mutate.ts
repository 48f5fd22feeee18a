/** A table client whose writes are changed on their way, for controls. Each function returns a count of the writes that it changed. */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";

type Expressions = Pick<UpdateItemCommandInput, "ConditionExpression" | "UpdateExpression">;

/** Sends each write with what `change` makes of its expressions; undefined leaves them as they are. */
function changeWrites(client: DynamoDBClient, change: (condition: string, update: string) => Expressions | undefined): () => number {
  let changed = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      const { ConditionExpression: condition = "", UpdateExpression: update = "" } = args.input as Partial<UpdateItemCommandInput>;
      const changes = change(condition, update);
      if (!changes) return next(args);
      changed++;
      return next({ ...args, input: { ...args.input, ...changes } });
    },
    { step: "initialize" },
  );
  return () => changed;
}

/** Makes `predicates` true in every condition that contains them. */
export function mutate(client: DynamoDBClient, ...predicates: readonly string[]): () => number {
  return mutateWhere(client, "", ...predicates);
}

/** The same, in writes with this update only. */
export function mutateWhere(client: DynamoDBClient, updates: string, ...predicates: readonly string[]): () => number {
  return changeWrites(client, (condition, update) => {
    if (!update.includes(updates)) return undefined;
    // Not removed, because the table refuses a value that no expression uses.
    const weaker = predicates.reduce(
      (text, predicate) => text.replace(predicate, `(${predicate} OR attribute_not_exists(nothing))`),
      condition,
    );
    return weaker === condition ? undefined : { ConditionExpression: weaker };
  });
}

/** Has every write with this update refused. */
export function bar(client: DynamoDBClient, updates: string): () => number {
  return changeWrites(client, (condition, update) =>
    update.includes(updates) ? { ConditionExpression: `attribute_exists(nothing) AND ${condition}` } : undefined,
  );
}

/** Makes the table receive `instead` in place of a part of an update. */
export function distort(client: DynamoDBClient, written: string, instead: string): () => number {
  return changeWrites(client, (_condition, update) =>
    update.includes(written) ? { UpdateExpression: update.replace(written, instead) } : undefined,
  );
}
