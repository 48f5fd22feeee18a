/** The item of the table itself: the tenancy that its first client records, and the doors by which its services are reached. */
import { expect, it } from "vitest";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { DOORS, FORMAT_VERSION, TENANCY, TENANCY_KEY } from "../../lib/store/dynamo/item.js";
import type { LockStore } from "../../lib/store/port.js";
import { systemClock } from "../../lib/core/time.js";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { POLICY } from "./fixture.js";

const OWN = "https://a.example";

/** A table, and the stores of services on it. */
class Scene {
  readonly #table = tableInMemory();
  reads = 0;
  /** Called before the first client's write. */
  beforeWrite: () => Promise<unknown> = async () => undefined;

  store(doors: readonly string[]): LockStore {
    const { calls, tableName } = this.#table;
    const counted = {
      ...calls,
      getItem: (input: Parameters<typeof calls.getItem>[0]) => (this.reads++, calls.getItem(input)),
      updateItem: async (input: Parameters<typeof calls.updateItem>[0]) => {
        const before = this.beforeWrite;
        this.beforeWrite = async () => undefined;
        await before();
        return calls.updateItem(input);
      },
    };
    return createDynamoStore({ calls: counted, tableName, policy: POLICY, clock: systemClock, random: () => 0, doors });
  }

  /** Writes the item as a version does that has this format. */
  recordedBy(format: number): Promise<unknown> {
    return this.#table.calls.updateItem({
      ...{ TableName: this.#table.tableName, Key: TENANCY_KEY },
      ConditionExpression: `attribute_not_exists(${TENANCY})`,
      UpdateExpression: `SET ${TENANCY} = :mine, fv = :format`,
      ExpressionAttributeValues: { ":mine": "shared", ":format": format },
    });
  }

  async item(): Promise<Readonly<Record<string, unknown>> | undefined> {
    return (await this.#table.calls.getItem({ TableName: this.#table.tableName, Key: TENANCY_KEY, ConsistentRead: true })).Item;
  }
}

it("a service writes its doors with its first request, and a table without any is read once", async () => {
  const scene = new Scene();
  await scene.store([OWN]).tenancy("shared");
  expect((await scene.item())?.[DOORS]).toEqual([OWN]);
  scene.reads = 0;
  await scene.store([OWN]).tenancy("shared");
  expect(scene.reads).toBe(1);
});

it("a service writes its doors too where another client recorded the tenancy at the same moment", async () => {
  const scene = new Scene();
  scene.beforeWrite = () => scene.recordedBy(FORMAT_VERSION);
  expect(await scene.store([OWN]).tenancy("shared")).toBe("shared");
  expect((await scene.item())?.[DOORS]).toEqual([OWN]);
});

it.each([
  ["the tenancy", (store: LockStore) => store.tenancy("shared")],
  ["the doors", (store: LockStore) => store.doors()],
])("a table of a newer format gets no door from who asks for %s", async (_what, ask) => {
  const scene = new Scene();
  await scene.recordedBy(FORMAT_VERSION + 1);
  await expect(ask(scene.store([OWN]))).rejects.toMatchObject({ code: "newer-format" });
  expect((await scene.item())?.[DOORS]).toBeUndefined();
});
