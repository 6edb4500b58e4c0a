/** Calls the API of a CDN and turns its refusals into faults. */
import { exchange, isPassing, type Outgoing, type Patience, type Sent, type Verdict } from "../exchange.ts";
import { RemoteFault } from "../fault.ts";

export type Api = {
  /** For messages. */
  readonly name: string;
  /** What the user should check when the API denies access. */
  readonly proof: string;
  /** What the user should check when the API answers 404. */
  readonly place: string;
  readonly patience: Patience;
};

/** Resolves when `isDone` accepts the response. Throws RemoteFault. */
export async function callApi(
  api: Api,
  make: () => Outgoing | Promise<Outgoing>,
  isDone: (sent: Sent) => boolean,
): Promise<void> {
  await exchange(make, (sent) => (isDone(sent) ? { done: null } : refusalOf(sent, api)), api.name, api.patience);
}

function refusalOf(sent: Sent, { name, proof, place }: Api): Verdict<null> {
  const { status } = sent;
  const told = `${status}${whyIn(sent.body.toString("utf8", 0, 2_048))}`;
  const fault = (kind: RemoteFault["kind"], message: string) => ({
    fault: new RemoteFault(kind, message),
    passing: false,
  });
  if (status === 401 || status === 403) return fault("denied", `${name} denies access (${told}). Check ${proof}.`);
  if (status === 404) return fault("missing", `${name} knows nothing of that (${told}). Check ${place}.`);
  if (isPassing(status) || sent.body.includes("TooManyInvalidationsInProgress")) {
    return { fault: new RemoteFault("busy", `${name} is busy or broken (${told}). Try again later.`), passing: true };
  }
  return fault("refused", `${name} refused the purge (${told}).`);
}

/** The error message in a JSON or XML response, after a colon; empty if there is none. */
function whyIn(text: string): string {
  const why =
    /"(?:message|msg|detail)"\s*:\s*"([^"]{1,200})"/.exec(text)?.[1] ?? /<Message>([^<]{1,200})</.exec(text)?.[1];
  return why === undefined ? "" : `: ${why}`;
}

/** Whether a body is a JSON object or array for which `holds` is true. */
export function isJson(body: Buffer, holds: (value: Readonly<Record<string, unknown>>) => boolean): boolean {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && holds(value as Record<string, unknown>);
  } catch {
    return false;
  }
}

export function chunksOf<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, index) => all.slice(index * size, (index + 1) * size));
}
