/**
 * The gateway's check of JSON Web Tokens, as AWS documents it
 * (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html): the signature, the issuer, the audience, the
 * times, and one of the route's scopes. And the issuer of such tokens.
 */
import { createSign, createVerify, generateKeyPairSync } from "node:crypto";
import type { APIGatewayProxyStructuredResultV2 } from "aws-lambda";

/** The claims and scopes that the gateway passes to the function. */
export interface Vouched {
  readonly claims: Readonly<Record<string, string>>;
  readonly scopes: readonly string[] | null;
}

/** Returns what the token vouches for, or the gateway's refusal. */
export type TokenCheck = (authorization: string | undefined, scopes: readonly string[]) => Vouched | APIGatewayProxyStructuredResultV2;

/** An issuer with its key. */
export interface Issuer {
  /** Makes a token of these claims, valid for an hour unless they say otherwise. */
  readonly tokenOf: (claims: Readonly<Record<string, string | number>>) => string;
  readonly check: TokenCheck;
}

const HOUR_S = 3600;

/** Makes an issuer of tokens for `audience`. */
export function issuerAt(issuer: string, audience: string): Issuer {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const nowS = (): number => Math.floor(Date.now() / 1000);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    tokenOf(claims) {
      const times = { iat: nowS(), exp: nowS() + HOUR_S };
      const signed = `${encode({ alg: "RS256", kid: "1" })}.${encode({ iss: issuer, aud: audience, ...times, ...claims })}`;
      return `${signed}.${createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url")}`;
    },
    check(authorization = "", scopes) {
      const [header = "", body = "", signature = ""] = authorization.replace(/^Bearer /, "").split(".");
      if (!createVerify("RSA-SHA256").update(`${header}.${body}`).verify(publicKey, signature, "base64url"))
        return refuse(401, "Unauthorized");
      const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as Readonly<Record<string, string | number>>;
      if (claims["iss"] !== issuer || claims["aud"] !== audience || Number(claims["exp"]) <= nowS()) return refuse(401, "Unauthorized");
      const given = String(claims["scope"] ?? "").split(" ");
      if (scopes.length > 0 && !scopes.some((scope) => given.includes(scope))) return refuse(403, "Forbidden");
      const asText = Object.fromEntries(Object.entries(claims).map(([name, value]) => [name, String(value)]));
      return { claims: asText, scopes: scopes.length > 0 ? given : null };
    },
  };
}

function refuse(statusCode: number, message: string): APIGatewayProxyStructuredResultV2 {
  return { statusCode, headers: { "content-type": "application/json" }, body: JSON.stringify({ message }) };
}
