/** A table client that drops one predicate from the conditions it sends, for controls. */
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
