/** A table that forgets one predicate of the conditions it is sent: what a control takes away. */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";

/** Makes `predicates` true in every condition that has them; returns in how many it did. */
export function mutate(client: DynamoDBClient, ...predicates: readonly string[]): () => number {
  let weakened = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      const { ConditionExpression: condition = "" } = args.input as Partial<UpdateItemCommandInput>;
      // Not cut out: a value that no expression uses is refused.
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
