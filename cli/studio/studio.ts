/** Serves the studio: its page, and the data that the page shows. It only reads, and asks no other machine. */
import { H3, HTTPResponse } from "h3";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { readApps } from "../../shared/apps.ts";
import { ConfigError } from "../../shared/config.ts";
import { DatabaseFault, describeOutage } from "../../shared/database/errors.ts";
import { UnknownAppError } from "../../shared/tree.ts";
import { describeApi } from "../openapi/document.ts";
import { readStoredExamples } from "../openapi/examples.ts";
import { readContent, readEntry } from "./content.ts";
import { openExplorer } from "./explore.ts";
import { readAdvice, readHealth, readQueueState } from "./health.ts";
import { openPartsView, readTreeView } from "./tree.ts";
import { readUsageView } from "./usage.ts";
import { readPageFile, readViewedApp, type StudioSite, type View } from "./view.ts";

export type StudioOptions = StudioSite & {
  /** Names, besides addresses and localhost, by which browsers reach it. */
  readonly hosts: readonly string[];
  readonly onError: (error: unknown) => void;
};

/** `app` serves all paths relative to where it is mounted. */
export type Studio = { readonly app: H3; readonly close: () => void };

export function openStudio(options: StudioOptions): Studio {
  const app = new H3({ silent: true });
  const explorer = openExplorer(options);
  const views: Readonly<Record<string, View>> = {
    apps: () => readApps(options.database, options.settings),
    answer: explorer.answer,
    content: (query) => readContent(options, query),
    entry: (query) => readEntry(options, query),
    usage: (query) => readUsageView(options, query),
    tree: (query) => readTreeView(options, query),
    parts: openPartsView(options),
    health: () => readHealth(options),
    queue: () => readQueueState(options),
    advice: () => readAdvice(options),
    openapi: (query) => describeViewedApi(options, query),
  };
  app.use(({ req, url }) => refuseStranger(req.headers, url, options.hosts));
  app.get("/", () => answer(200, HTML, readPageFile("page.html"), writePagePolicy(options.media)));
  app.get("/reference.html", ({ url }) => showReference(url.searchParams));
  for (const [name, type] of Object.entries(FILES)) app.get(`/${name}`, () => answer(200, type, readPageFile(name)));
  for (const [name, view] of Object.entries(views))
    app.get(`/data/${name}`, ({ url }) => show(view, url.searchParams, options.onError));
  app.all("/**", () => refuse(404, "There is no such page."));
  return { app, close: explorer.close };
}

// The page and its files, which the bundle of the program has beside it.

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const FILES: Readonly<Record<string, string>> = {
  "page.js": SCRIPT,
  "page.css": "text/css; charset=utf-8",
  "rapidoc-min.js": SCRIPT,
};

/** Nothing of another origin, and no script or style in the page. Images of this machine are media of local apps. */
function writePagePolicy(media: string | null): string {
  return (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; " +
    `img-src 'self' data: http://localhost:* http://*.localhost:* http://127.0.0.1:* ${media ?? ""}; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  );
}
/** RapiDoc writes styles into its elements. */
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
const FILE_POLICY = "default-src 'none'";

/** Attributes of RapiDoc, with the colours of page.css. */
const LIGHT = `theme="light" bg-color="#ffffff" text-color="#1b1d20" primary-color="#0b57c0" nav-bg-color="#f7f7f5" nav-text-color="#1b1d20"`;
const DARK = `theme="dark" bg-color="#1e2125" text-color="#e7e8ea" primary-color="#8ab8ff" nav-bg-color="#15171a" nav-text-color="#e7e8ea"`;

function showReference(query: URLSearchParams): HTTPResponse {
  const app = query.get("app") ?? "";
  if (!APP_KEY.test(app)) return refuse(400, "The parameter app is missing, or is no app key.");
  const theme = query.get("theme") === "dark" ? DARK : LIGHT;
  return answer(
    200,
    HTML,
    readPageFile("reference.html").replace("APP", app).replace("THEME", theme),
    REFERENCE_POLICY,
  );
}

// The data of a view, as JSON.

async function describeViewedApi(site: StudioSite, query: URLSearchParams) {
  const app = await readViewedApp(site, query);
  const examples = await site.database.transaction("read", (session) => readStoredExamples(session, app));
  return describeApi(app, examples);
}

async function show(view: View, query: URLSearchParams, onError: (error: unknown) => void): Promise<HTTPResponse> {
  try {
    return answer(200, JSON_TYPE, JSON.stringify(await view(query)));
  } catch (error) {
    if (error instanceof ConfigError || error instanceof UnknownAppError) return refuse(400, error.message);
    if (error instanceof DatabaseFault) return refuse(503, describeOutage(error));
    onError(error);
    return refuse(500, "This could not be read. The studio's terminal says why.");
  }
}

const JSON_TYPE = "application/json; charset=utf-8";

function refuse(status: number, message: string): HTTPResponse {
  return answer(status, JSON_TYPE, JSON.stringify({ error: message }));
}

function answer(status: number, type: string, body: string, policy = FILE_POLICY): HTTPResponse {
  return new HTTPResponse(body, {
    status,
    headers: {
      "Content-Type": type,
      "Cache-Control": "no-store",
      "Content-Security-Policy": policy,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Resource-Policy": "same-origin",
    },
  });
}

// Keeps other pages of the same browser out: they could read drafts.

/**
 * A name of somebody else's that leads to this machine is refused (DNS rebinding), and so is what another page asks
 * for. Undefined lets the request through.
 */
function refuseStranger(headers: Headers, { hostname }: URL, hosts: readonly string[]): HTTPResponse | undefined {
  const isKnown = /^(localhost|[\d.]+|\[[\da-f:.]+\])$/.test(hostname) || hosts.includes(hostname);
  if (!isKnown) return refuse(403, `This studio has no name ${hostname}: open it by its address.`);
  const site = headers.get("Sec-Fetch-Site") ?? "none";
  const isNavigation = headers.get("Sec-Fetch-Mode") === "navigate" && headers.get("Sec-Fetch-Dest") === "document";
  if (site === "none" || site === "same-origin" || isNavigation) return undefined;
  return refuse(403, "Another page may not read the studio.");
}
