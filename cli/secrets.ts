/**
 * Keeps secrets out of what a command prints: the settings that only the environment can set, and passwords in addresses.
 */
import { SETTINGS, type SettingName } from "../shared/config.ts";

/** Help text for the settings that can be set only in the environment. */
export function secretsText(names: readonly SettingName[]): string {
  const secrets = names.map((name) => SETTINGS[name]).filter(({ flags }) => flags === null);
  if (secrets.length === 0) return "";
  const width = Math.max(...secrets.map(({ env }) => env[0].length));
  return `\nEnvironment:\n${secrets.map(({ env, describes }) => `  ${env[0].padEnd(width)}  ${describes}`).join("\n")}\n`;
}

/** A shorter word may be an ordinary one, which messages contain anyway. */
const SHORTEST_SECRET = 8;

/**
 * The words of the secrets in a command's settings, without the name of a header. A store, a CDN or a proxy may repeat in
 * its answer what it was sent.
 */
export function secretsIn(names: readonly SettingName[], settings: Readonly<Record<string, unknown>>): string[] {
  const secrets = names.filter((name) => SETTINGS[name].flags === null).map((name) => settings[name]);
  const words = secrets.flatMap((secret) => (typeof secret === "string" ? secret.split(/^[^\s:]+:|\s+/) : []));
  return words.filter((word) => word.length >= SHORTEST_SECRET);
}

/** Replaces the passwords in addresses. Whoever mistypes an option sees it again in the message. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\/\/[^\s/@:]*:)[^\s/]*@/g, "$1…@").replace(/([?&](?:ssl)?password=)[^\s&]+/g, "$1…");
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
}
