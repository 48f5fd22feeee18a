/**
 * The operations over HTTP with the built-in transport: DynamoDB's JSON 1.0, signed here, over connections of its own. It
 * does the same as the AWS SDK's client for 0.6 of its CPU: the same attempts, pauses and error names, and the same correction of the
 * clock by the `Date` of answers.
 */
import { type Clock, systemClock } from "../../core/time.js";
import { Contact } from "../../core/what-came-back.js";
import { plainItem } from "./attribute-value.js";
import { HAS_ALL, NotDynamo, REQUEST_ID, judged } from "./contact.js";
import type { Item } from "./layout.js";
import type {
  AllCalls,
  DeleteInput,
  GetInput,
  PageOutput,
  QueryInput,
  ScanInput,
  TableCalls,
  TransactInput,
  UpdateInput,
  WireItem,
} from "./calls.js";
import { refusesCredentials } from "./found-credentials.js";
import { type Endpoint, type Reply, type SendBounds, TABLE_CALLS, send } from "./http-sender.js";
import { type RetryStrategy, sendUntilAnswered } from "./retries.js";
import { type ErrorMetadata, bodyOf } from "./service-error.js";
import type { Sign } from "./signature.js";
import type { AnswerWatcher } from "./table-clock.js";
import { itemText } from "./wire-text.js";

/** An endpoint and the signer for it, both current. */
export interface Destination {
  readonly endpoint: Endpoint;
  readonly sign: Sign;
}

export interface TransportSettings {
  /**
   * Returns the endpoint and the signer. Called for each request, since credentials are refreshed. Called with the destination of a request
   * whose credentials were refused, it looks for others, and returns the same destination if there are none.
   */
  readonly destination: (tableNames: readonly string[], refused?: Destination) => Promise<Destination>;
  readonly retries: () => Promise<RetryStrategy>;
  /** @default those of this package's calls */
  readonly bounds?: SendBounds;
  readonly userAgent: string;
  /** True if the signing clock follows the `Date` of answers. @default true */
  readonly correctsClock?: boolean;
  readonly watcher?: AnswerWatcher;
}

const { connectionTimeout, requestTimeout } = TABLE_CALLS.requestHandler;
const BOUNDS: SendBounds = { connectMs: connectionTimeout, answerMs: requestTimeout };

const SERVICE = "DynamoDB_20120810";
/** The clock error in ms above which a request is signed and sent again. */
const SKEWED_MS = 240_000;
/** The duration in ms above which an answer's time is ignored. */
const SLOW_ANSWER_MS = 900_000;

/** Returns operations that send by `settings`. The machine's clock signs, whichever clock the locks use. */
export function builtInCalls(settings: TransportSettings, clock: Clock = systemClock): AllCalls {
  return new BuiltInCalls(settings, clock);
}

type Members = Readonly<Record<string, unknown>>;

/** True if DynamoDB gave this answer. Its engines send these headers too; not each has a checksum, so that is not asked for. */
function isDynamo({ headers }: Reply): boolean {
  return headers[REQUEST_ID] !== undefined && headers["content-type"]?.startsWith("application/x-amz-json-1.0") === true;
}

/** The operations. All of them share the signing clock, so an answer to one corrects it for the next. */
class BuiltInCalls implements AllCalls {
  readonly #settings: TransportSettings;
  readonly #clock: Clock;
  readonly #contact = new Contact();
  /** The offset of the signing clock from the machine's clock. */
  #clockOffsetMs = 0;

  constructor(settings: TransportSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async #attempt({ endpoint, sign }: Destination, operation: string, body: string): Promise<Members> {
    const { bounds = BOUNDS, userAgent, watcher } = this.#settings;
    const offsetMs = this.#clockOffsetMs;
    const sentAtMs = this.#clock.wallMs();
    const headers = [...sign(`${SERVICE}.${operation}`, body, sentAtMs + offsetMs), "user-agent", userAgent];
    const answered = watcher?.sending();
    const reply = await send(endpoint, headers, body, bounds, this.#clock);
    // Anybody else's time is none of the table's.
    if (isDynamo(reply)) answered?.(reply.headers.date);
    const isCorrected = this.#correctClock(reply, sentAtMs, offsetMs);
    try {
      const members = bodyOf(reply);
      if (!isDynamo(reply)) throw new NotDynamo(reply.status);
      return members;
    } catch (error) {
      const { $metadata } = error as { readonly $metadata?: ErrorMetadata };
      if (isCorrected && $metadata) $metadata.clockSkewCorrected = true;
      throw error;
    }
  }

  /** Corrects the signing clock by the answer's. Returns true if it was so far off that the signature was too old or too new. */
  #correctClock({ headers }: Reply, sentAtMs: number, offsetMs: number): boolean {
    const { correctsClock = true } = this.#settings;
    const dateMs = Date.parse(headers.date ?? "");
    const nowMs = this.#clock.wallMs();
    if (!correctsClock || Number.isNaN(dateMs) || headers.age !== undefined || nowMs - sentAtMs > SLOW_ANSWER_MS) return false;
    const correctedMs = dateMs - nowMs;
    this.#clockOffsetMs = correctedMs;
    return Math.abs(correctedMs) >= SKEWED_MS && correctedMs !== offsetMs;
  }

  /** Sends an operation as often as its retry strategy allows. @param hasAll true of an answer with the attributes that were asked for */
  async #call(
    operation: string,
    tables: readonly string[],
    body: string,
    hasAll: (members: Members) => boolean = () => true,
  ): Promise<Members> {
    const retries = await this.#settings.retries();
    // This is outside the attempts: the provider has already searched long enough for a region or credentials.
    const destination = await this.#settings.destination(tables);
    const sendTo = (one: Destination): Promise<Members> =>
      sendUntilAnswered(() => this.#attempt(one, operation, body), retries, this.#clock);
    try {
      const members = await sendTo(destination).catch(async (error: unknown) => {
        const found = refusesCredentials(error as Error) && (await this.#settings.destination(tables, destination).catch(() => undefined));
        if (!found || found === destination) throw error;
        return sendTo(found);
      });
      if (!hasAll(members)) throw new NotDynamo(200);
      this.#contact.made();
      return members;
    } catch (error) {
      const { protocol, hostname, port } = destination.endpoint;
      throw judged(error, `${protocol}//${hostname}:${port}`, this.#contact);
    }
  }

  async updateItem(input: UpdateInput): ReturnType<TableCalls["updateItem"]> {
    const hasAll = (members: Members): boolean => HAS_ALL.updateItem(input, members);
    const { Attributes } = await this.#call("UpdateItem", [input.TableName], conditionalText(input), hasAll);
    return { Attributes: itemIn(Attributes) };
  }

  deleteItem(input: DeleteInput): Promise<unknown> {
    return this.#call("DeleteItem", [input.TableName], conditionalText(input));
  }

  async getItem({ TableName, Key, ConsistentRead }: GetInput): ReturnType<TableCalls["getItem"]> {
    const body = `{"TableName":${JSON.stringify(TableName)},"Key":${itemText(Key)},"ConsistentRead":${ConsistentRead}}`;
    const { Item } = await this.#call("GetItem", [TableName], body);
    return { Item: itemIn(Item) };
  }

  query(input: QueryInput): Promise<PageOutput> {
    return this.#page("Query", input);
  }

  scan(input: ScanInput): Promise<PageOutput> {
    return this.#page("Scan", input);
  }

  async #page(operation: "Query" | "Scan", input: QueryInput | ScanInput): Promise<PageOutput> {
    const { ExpressionAttributeValues: values, ExclusiveStartKey: after, ...rest } = input;
    const from = after ? `,"ExclusiveStartKey":${itemText(after)}` : "";
    const body = `${JSON.stringify(rest).slice(0, -1)},"ExpressionAttributeValues":${itemText(values)}${from}}`;
    const hasAll = (members: Members): boolean => HAS_ALL.query(input, members);
    const { Items, LastEvaluatedKey } = await this.#call(operation, [input.TableName], body, hasAll);
    return { Items: (Items as readonly WireItem[]).map(plainItem), LastEvaluatedKey: itemIn(LastEvaluatedKey) };
  }

  transactWriteItems({ ClientRequestToken, TransactItems }: TransactInput): Promise<unknown> {
    const items = TransactItems.map(({ Update }) => `{"Update":${conditionalText(Update)}}`).join(",");
    const body = `{"ClientRequestToken":"${ClientRequestToken}","TransactItems":[${items}]}`;
    return this.#call(
      "TransactWriteItems",
      TransactItems.map(({ Update }) => Update.TableName),
      body,
    );
  }
}

function conditionalText({ Key, ExpressionAttributeValues, ...input }: UpdateInput | DeleteInput): string {
  const values = itemText(ExpressionAttributeValues);
  return `${JSON.stringify(input).slice(0, -1)},"Key":${itemText(Key)},"ExpressionAttributeValues":${values}}`;
}

function itemIn(wire: unknown): Item | undefined {
  return wire === undefined || wire === null ? undefined : plainItem(wire as WireItem);
}
