/**
 * A cluster of real processes whose metrics are gathered, to be run with tsx: the primary starts workers, tells their
 * numbers, and obeys lines on its standard input: `scrape`, `kill <id>`, `fork`.
 */
import cluster from "node:cluster";
import { createInterface } from "node:readline";
import { openMetrics } from "../../server/metrics.ts";

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const seen = { id: "", method: "GET", target: "/", appKey: "shop", client: "", headers: {}, counted: false, bytes: 1 };
const count = (metrics, status, times, source = "tree") => {
  for (let time = 0; time < times; time++) {
    metrics.observe({ ...seen, shape: "page", status, source, start: performance.now() });
  }
};

if (cluster.isPrimary) {
  const own = openMetrics(() => 0);
  say({ fds: /precast_process_max_fds (\d+)/.exec(await own.text())[1] });
  cluster.on("message", ({ id }, message) => message === "ready" && say({ ready: id }));
  cluster.on("exit", ({ id }) => say({ exit: id }));
  createInterface({ input: process.stdin }).on("line", async (line) => {
    const [order, id] = line.split(" ");
    if (order === "fork") cluster.fork();
    if (order === "scrape") say({ text: await own.sumOfWorkers() });
    if (order === "kill") cluster.workers[id]?.process.kill("SIGKILL");
  });
  process.stdin.on("end", () => process.exit(0));
  process.on("exit", () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill("SIGKILL");
  });
} else {
  const metrics = openMetrics(() => 0);
  const { id } = cluster.worker;
  metrics.addGauges({ treeAge: () => 5, liveWaiting: () => 10, ledgerLag: () => id, databaseUp: () => id % 2 });
  count(metrics, 200, 100 * cluster.worker.id);
  count(metrics, 404, 1);
  count(metrics, 200, 2, "live");
  process.send("ready");
}
