/** Signs requests to Amazon's APIs and compatible ones (AWS Signature Version 4). */
import { AwsV4Signer } from "aws4fetch";
import { ConfigError, type Settings } from "../../shared/config.ts";
import type { OutgoingRequest } from "./exchange.ts";

export type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Null for permanent credentials: only temporary ones have a session token. */
  readonly sessionToken: string | null;
};

export const CREDENTIAL_SETTINGS = ["accessKeyId", "secretAccessKey", "sessionToken"] as const;
type CredentialSettings = Settings<(typeof CREDENTIAL_SETTINGS)[number]>;

/** Error messages for missing credentials; empty when none are missing. */
export function missingCredentials({ accessKeyId, secretAccessKey }: CredentialSettings): string[] {
  return [
    ...(accessKeyId === null ? ["AWS_ACCESS_KEY_ID is missing in the environment: credentials are required."] : []),
    ...(secretAccessKey === null ? ["AWS_SECRET_ACCESS_KEY is missing in the environment."] : []),
  ];
}

/** Throws ConfigError when they are missing. */
export function credentialsIn(settings: CredentialSettings): Credentials {
  const { accessKeyId, secretAccessKey, sessionToken } = settings;
  if (accessKeyId === null || secretAccessKey === null) throw new ConfigError(missingCredentials(settings));
  return { accessKeyId, secretAccessKey, sessionToken };
}

export type Signer = (request: OutgoingRequest, now: Date) => Promise<OutgoingRequest>;

export function openSigner(
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  scope: { readonly service: string; readonly region: string },
): Signer {
  const keys = { accessKeyId, secretAccessKey, ...(sessionToken === null ? {} : { sessionToken }) };
  /** Derived signing keys, one a day. */
  const cache = new Map<string, ArrayBuffer>();
  return async ({ method, url, headers, body }, now) => {
    const datetime = now.toISOString().replace(/[:-]|\.\d{3}/g, "");
    const request = { method, url: url.href, headers, ...(body === undefined ? {} : { body }) };
    const signed = await new AwsV4Signer({ ...keys, ...scope, ...request, datetime, cache }).sign();
    return { method, url: signed.url, headers: signed.headers, body };
  };
}
