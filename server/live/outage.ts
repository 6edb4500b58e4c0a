/** What the log says when the primary becomes unavailable, and when it is available again. */
import { describeOutage } from "../../shared/database/fault.ts";

export function awayNews(error: unknown, hasReplicas: boolean): string {
  const instead = hasReplicas ? "Only its replicas answer live requests" : "Live requests get 503";
  return `${describeOutage(error)}. ${instead} until it is available again.`;
}

export const BACK_NEWS = "The database answers again.";
