/** A table client that drops one predicate from the conditions it sends, or has writes of one kind refused, for controls. */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";

/** Makes `predicates` true in every condition that contains them. Returns a count of those conditions. */
export function mutate(client: DynamoDBClient, ...predicates: readonly string[]): () => number {
  let weakened = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      const { ConditionExpression: condition = "" } = args.input as Partial<UpdateItemCommandInput>;
      // Not removed, because the table refuses a value that no expression uses.
      const weaker = predicates.reduce(
        (text, predicate) => text.replace(predicate, `(${predicate} OR attribute_not_exists(nothing))`),
        condition,
      );
      if (weaker === condition) return next(args);
      weakened++;
      return next({ ...args, input: { ...args.input, ConditionExpression: weaker } });
    },
    { step: "initialize" },
  );
  return () => weakened;
}

/** Has every write with this update refused. Returns a count of those writes. */
export function bar(client: DynamoDBClient, update: string): () => number {
  let barred = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      const { ConditionExpression: condition = "", UpdateExpression: updates } = args.input as Partial<UpdateItemCommandInput>;
      if (!updates?.includes(update)) return next(args);
      barred++;
      return next({ ...args, input: { ...args.input, ConditionExpression: `attribute_exists(nothing) AND ${condition}` } });
    },
    { step: "initialize" },
  );
  return () => barred;
}
