/** One of several processes of a server: answers requests, and reports only to the first process. */
import type { Metrics } from "../../server/admin/metrics.ts";
import { shareOf } from "../../server/http/limits.ts";
import { leavePrimary, sendToPrimary, waitForStop } from "../../server/workers/worker.ts";
import { DONE, FAILED } from "../command.ts";
import { describeFailure } from "../failure.ts";
import { openMetricsOf, openOwnSite, type Process, type ServeSettings, withDatabases } from "./process.ts";

/** A worker prints nothing but its log: the first process prints results and failures, once for all workers. */
export async function serveAsWorker({ context, settings, log }: Process): Promise<number> {
  const stop = waitForStop();
  const share = shareOfWorker(settings);
  try {
    await withDatabases(share, async (databases) => {
      const metrics = settings.adminPort === null ? null : await openMetricsOf(log);
      const sendLast = metrics === null ? null : await sendMetricsOf(metrics);
      const { url, stop: end } = await openOwnSite({ context, settings: share, log }, databases, metrics);
      await sendToPrimary({ kind: "listening", url });
      await stop;
      await end();
      await sendLast?.();
    });
    return DONE;
  } catch (error) {
    await sendToPrimary({ kind: "failed", why: describeFailure(error) });
    return FAILED;
  } finally {
    leavePrimary();
  }
}

/** Imported on demand, because metrics are gathered only with an admin port. */
async function sendMetricsOf(metrics: Metrics): Promise<() => Promise<void>> {
  const { sendMetrics } = await import("../../server/admin/worker-metrics.ts");
  return sendMetrics(metrics);
}

/** Limits are totals for all workers, so each worker gets its share of them. */
function shareOfWorker(settings: ServeSettings): ServeSettings {
  const { workers, maxConnections, connections, queue, memoryCache } = settings;
  return {
    ...settings,
    maxConnections: shareOf(maxConnections, workers),
    connections: shareOf(connections, workers),
    queue: shareOf(queue, workers),
    memoryCache: Math.floor(memoryCache / workers),
  };
}
