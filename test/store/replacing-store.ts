/** A store that reads, decides and replaces, on condition that nothing changed: it never enqueues without a read. A control. */
import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { systemClock } from "../../lib/core/time.js";
import { type Attempt, type Form, type Stored, type Written, compareAndSet } from "../../lib/store/compare-and-set.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { itemKey, toItem } from "../../lib/store/dynamo/item.js";
import type { LockStore } from "../../lib/store/port.js";
import { methodsOf, POLICY } from "./fixture.js";
import type { EngineTable } from "./differential/differential-pair.js";

/** A store on this table. It records no keep-alives. */
export function replacingStore({ client, calls, tableName }: EngineTable): LockStore {
  const documents = DynamoDBDocumentClient.from(client);
  const deps = { policy: POLICY, clock: systemClock, random: () => Math.random() };
  const store = createDynamoStore({ calls, tableName, ...deps });
  return {
    ...methodsOf(store),
    async apply(address, command, clocks) {
      const replace = async (next: Parameters<typeof toItem>[0], seen: typeof next | undefined) => {
        const condition = seen
          ? { ConditionExpression: "v = :seen", ExpressionAttributeValues: { ":seen": seen.version } }
          : { ConditionExpression: "attribute_not_exists(v)" };
        try {
          await documents.send(new PutCommand({ TableName: tableName, Item: { ...itemKey(address), ...toItem(next) }, ...condition }));
          return { written: true } as const;
        } catch (error) {
          if (!(error instanceof ConditionalCheckFailedException)) throw error;
          return { written: false, seen: await store.read(address) } as const;
        }
      };
      const read = async () => {
        const record = await store.read(address);
        return record && { record };
      };
      const forms: readonly Form<typeof command>[] = [{ fits: ({ decision }) => decision.next !== undefined }];
      const write = async (
        _form: Form<typeof command>,
        { decision, seen }: Attempt<typeof command>,
      ): Promise<Written<typeof command, Stored>> => {
        const result = await replace(decision!.next!, seen?.record);
        return result.written ? { written: true, decided: decision! } : { written: false, seen: result.seen && { record: result.seen } };
      };
      return compareAndSet({ stored: await read(), isFresh: true }, command, clocks, { forms, read, write }, deps);
    },
  };
}
