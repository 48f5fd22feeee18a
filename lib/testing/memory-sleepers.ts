/** Sleepers and tied leases in this process's memory, for trials and tests. */
import { type Address, type Sleeper, type SleeperStore, type TiedLease, keptTogether } from "../store/port.js";

function idOf({ namespace, kind, key }: Address): string {
  return `${namespace}/${kind}/${key}`;
}

/** Creates a store of sleepers and tied leases in this process's memory. */
export function createMemorySleepers(): SleeperStore {
  const all = new Map<string, Sleeper | TiedLease>();
  const idOfLease = (address: Address, leaseId: string): string => `${idOf(address)}/${leaseId}`;
  const idOfKept = (kept: Sleeper | TiedLease): string =>
    "acquire" in kept ? idOfLease(kept.address, kept.acquire.leaseId) : idOfLease(kept.address, `${kept.leaseId}/tie`);
  const members = (kept: Sleeper | TiedLease): number => ("acquire" in kept ? kept.targets.length : 1);
  return {
    async put(kept) {
      const next = keptTogether(all.get(idOfKept(kept)), kept);
      if ("code" in next) return next;
      all.set(idOfKept(kept), next);
      return undefined;
    },
    async list() {
      const kept = [...all.values()];
      return { sleepers: kept.filter((one) => "acquire" in one), ties: kept.filter((one) => "executionArn" in one), unreadable: [] };
    },
    read: async (address, leaseId) => all.get(idOfLease(address, leaseId)) as Sleeper | undefined,
    async delete(kept) {
      const current = all.get(idOfKept(kept));
      if (current?.putAtMs === kept.putAtMs && members(current) === members(kept)) all.delete(idOfKept(kept));
    },
  };
}
