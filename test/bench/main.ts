/** `npm run bench -- <name>`: picks a bench by its name and runs it. */
import { type Bench, OptionError } from "./bench.ts";
import { buildBench } from "./build.ts";
import { deployBench } from "./deploy.ts";
import { liveBench } from "./live.ts";
import { serveBench } from "./serve.ts";
import { soakBench } from "./soak.ts";
import { workersBench } from "./workers.ts";

const BENCHES: readonly Bench[] = [buildBench, serveBench, liveBench, deployBench, workersBench, soakBench];

function overview(): string {
  const lines = BENCHES.map(({ name, describes }) => `  ${name.padEnd(8)} ${describes}`);
  return `npm run bench -- <name> [options]\n\n${lines.join("\n")}\n\nnpm run bench -- <name> --help lists its options.\n`;
}

async function runBench([name, ...args]: readonly string[]): Promise<number> {
  const bench = BENCHES.find((one) => one.name === name);
  if (bench === undefined) {
    const asked = name === undefined || name === "--help";
    (asked ? process.stdout : process.stderr).write(asked ? overview() : `No bench is called ${name}.\n${overview()}`);
    return asked ? 0 : 1;
  }
  if (!args.includes("--help")) return bench.run(args);
  process.stdout.write(`npm run bench -- ${bench.name} [options]: ${bench.describes}\n\n${bench.help}`);
  return 0;
}

try {
  process.exitCode = await runBench(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof OptionError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
