/** Lets `fetch` reach names that end with `.localhost`, which are this machine (RFC 6761): Node's resolver doesn't know them. */
import dns from "node:dns";

const { lookup } = dns;
dns.lookup = ((name: string, ...rest: [never, never]) =>
  lookup(name.endsWith(".localhost") ? "localhost" : name, ...rest)) as typeof lookup;
