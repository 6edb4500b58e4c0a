/** Writes VCL for Varnish. It names files itself, unless the name is a hash; the files come from a static host. */
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, preflightHeaders, purgeRefusalAnswer, secondsOf, unavailableAnswer } from "../headers.ts";
import { comment, sections } from "../text.ts";
import { appRules, setHeaders, treePathOf } from "../vcl.ts";
import { FILE_SUBROUTINE } from "./varnish-names.ts";

export function varnishFiles(edge: Edge): EdgeFile[] {
  const tree = treeOf(edge);
  const parts = [
    comment(HEAD),
    start(edge.origin, tree),
    PURGERS,
    appRules(edge.apps),
    FILE_SUBROUTINE,
    receive(edge, tree),
    fetch(edge, tree),
    deliver(edge),
  ];
  return [{ name: "precast.vcl", text: sections(parts) }];
}

/** Throws Error without `--tree-url`, and when that or the origin is not http. */
function treeOf({ treeUrl, origin }: Edge): URL {
  if (treeUrl === null)
    throw new Error("Varnish has no files itself. Say where a static host serves the tree: --tree-url URL.");
  const tree = new URL(treeUrl);
  if (tree.protocol === "http:" && origin.protocol === "http:") return tree;
  throw new Error("Varnish speaks no TLS to what is behind it: --tree-url and --origin begin with http://.");
}

const HEAD = [
  "The files of a Precast tree from a static host, everything else from `precast serve`, for Varnish 6.2 or newer.",
  "Made by `precast edge varnish`.",
  "",
  "Varnish can name all files but those of filter values above 64 bytes, which are hashes; and parameters that change nothing",
  "(utm_source) it does not look through. What it cannot name, and what is no file, the origin answers, with the same bytes.",
  "",
  "To put it in place:",
  "  1. Let any web server serve the folder of the tree, `.precast` left out, at the address of `precast_tree` below.",
  "  2. Use this file as Varnish's VCL, and let Varnish read as long a target as the origin does:",
  "     varnishd -f precast.vcl -p http_req_hdr_len=32k -p http_req_size=64k …",
  "  3. Add the addresses of who deploys to `precast_purgers` below. After a build,",
  "     precast deploy … --purge 'http://<this Varnish>{path}' --purge-method PURGE",
  "     has Varnish forget what has changed. Files are kept under their path in the tree, so no app is given another's.",
  "When an app is added, make it again.",
  "",
  "The ETag of a file is the static host's. Where that makes it of time and size, as nginx does, copies have to keep the times.",
];

function start(origin: URL, tree: URL): string {
  return `vcl 4.1;

import blob;
import std;

${backend("precast_tree", tree)}

${backend("precast_origin", origin)}`;
}

const PURGERS = `# Who may have files forgotten, by PURGE: add the addresses of who deploys. Where a proxy on this machine lets clients in
# (for TLS, say) and does not tell Varnish their addresses (PROXY), all come from here: have it refuse PURGE.
acl precast_purgers {
  "127.0.0.1";
  "::1";
}`;

function backend(name: string, { hostname, port }: URL): string {
  return `backend ${name} {
  .host = "${hostname}";
  .port = "${port || "80"}";
}`;
}

function receive({ policy }: Edge, tree: URL): string {
  return `sub vcl_recv {
  if (req.method == "OPTIONS") {
    return (synth(204));
  }
  if (req.method == "PURGE" && client.ip !~ precast_purgers) {
    return (synth(405));
  }
  if (req.restarts == 1 && req.http.X-Precast-Kept) {
    # The static host is away: what is kept, or else the origin.
    set req.grace = ${secondsOf(policy.cdns, "stale-if-error")}s;
    set req.backend_hint = precast_tree;
    return (hash);
  }
  if (req.restarts > 0) {
    # There is no such file, or the static host is away.
    set req.url = req.http.X-Precast-Target;
    unset req.http.X-Precast-File;
    unset req.http.X-Precast-Kept;
    set req.backend_hint = precast_origin;
    return (pass);
  }
  unset req.http.X-Precast-App;
  unset req.http.X-Precast-File;
  unset req.http.X-Precast-Value;
  unset req.http.X-Precast-Hex;
  unset req.http.X-Precast-Name;
  unset req.http.X-Precast-Target;
  unset req.http.X-Precast-Kept;
  # The origin knows no ranges.
  unset req.http.Range;
  if (req.method == "GET" || req.method == "HEAD" || req.method == "PURGE") {
    call precast_app;
  }
  if (req.http.X-Precast-App) {
    call precast_file;
  }
  if (!req.http.X-Precast-File) {
    if (req.method == "PURGE") {
      # What the origin answers is not kept.
      return (synth(404));
    }
    set req.backend_hint = precast_origin;
    return (pass);
  }
  set req.http.X-Precast-Target = req.url;
  set req.url = "${treePathOf(tree)}" + req.http.X-Precast-App + "/v1/" + req.http.X-Precast-File;
  set req.backend_hint = precast_tree;
  # The origin knows no dates.
  unset req.http.If-Modified-Since;
  unset req.http.Cookie;
  unset req.http.Authorization;
  if (req.method == "PURGE") {
    return (purge);
  }
  set req.grace = ${secondsOf(policy.cdns, "stale-while-revalidate")}s;
  return (hash);
}

sub vcl_miss {
  if (req.http.X-Precast-Kept) {
    # Nothing is.
    return (restart);
  }
}

# The path in the tree names the app, too.
sub vcl_hash {
  hash_data(req.url);
  return (lookup);
}`;
}

function fetch({ origin, policy }: Edge, tree: URL): string {
  const kept = secondsOf(policy.cdns, "max-age");
  const stale = Math.max(secondsOf(policy.cdns, "stale-while-revalidate"), secondsOf(policy.cdns, "stale-if-error"));
  return `sub vcl_backend_fetch {
  set bereq.http.Host = "${origin.host}";
  if (bereq.http.X-Precast-File) {
    set bereq.http.Host = "${tree.host}";
    unset bereq.http.X-App-Key;
  }
  unset bereq.http.X-Precast-App;
  unset bereq.http.X-Precast-Value;
  unset bereq.http.X-Precast-Hex;
  unset bereq.http.X-Precast-Name;
  unset bereq.http.X-Precast-Target;
  unset bereq.http.X-Precast-Kept;
}

# As long as --cdn-cache-control says. What is no file is asked for again.
sub vcl_backend_response {
  if (bereq.http.X-Precast-File) {
    if (beresp.status >= 500) {
      # What is kept is better: another answer would take its place.
      return (abandon);
    }
    unset beresp.http.Set-Cookie;
    unset beresp.http.Vary;
    set beresp.ttl = ${kept}s;
    set beresp.grace = ${stale}s;
    if (beresp.status != 200) {
      # It is kept that there is none, so that nobody waits until another has asked.
      set beresp.ttl = 120s;
      set beresp.grace = 0s;
      set beresp.uncacheable = true;
    }
    return (deliver);
  }
}`;
}

function deliver({ policy }: Edge): string {
  const unavailable = unavailableAnswer();
  const refused = purgeRefusalAnswer();
  return `# The origin is away. Where it is the static host that is, vcl_synth goes on.
sub vcl_backend_error {
  if (bereq.http.X-Precast-File) {
    return (fail);
  }
  set beresp.status = 503;
${setHeaders("beresp", unavailable.headers)}
  set beresp.body = ${longString(unavailable.body)};
  return (deliver);
}

sub vcl_deliver {
  if (req.http.X-Precast-File && resp.status != 200 && resp.status != 304) {
    return (restart);
  }
  if (req.http.X-Precast-File) {
    unset resp.http.Last-Modified;
    unset resp.http.Accept-Ranges;
${setHeaders("resp", fileHeaders(policy))}
    # Several tags, and any: Varnish itself compares one.
    if (req.http.If-None-Match == "*" || std.strstr(req.http.If-None-Match, regsub(resp.http.ETag, "^W/", ""))) {
      set req.http.If-None-Match = resp.http.ETag;
    }
  }
}

sub vcl_synth {
  if (req.http.X-Precast-File && resp.status == 503) {
    set req.http.X-Precast-Kept = "true";
    return (restart);
  }
  if (req.method == "OPTIONS") {
${setHeaders("resp", preflightHeaders())}
    return (deliver);
  }
  if (resp.status == 405) {
${setHeaders("resp", refused.headers)}
    set resp.body = ${longString(refused.body)};
    return (deliver);
  }
}`;
}

/** A long string of VCL ends at the first `"}`, so the closing braces of a text become a string of their own. */
function longString(text: string): string {
  const braces = /\}*$/.exec(text)?.[0] ?? "";
  return `{"${text.slice(0, text.length - braces.length)}"} + "${braces}"`;
}
