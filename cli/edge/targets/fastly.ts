/** Writes VCL for Fastly. It names files itself, unless a value needs decoding; the files come from a static host. */
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, preflightHeaders, secondsOf } from "../headers.ts";
import { comment, sections } from "../text.ts";
import { appRules, setHeaders, treePathOf } from "../vcl.ts";
import { FILE_SUBROUTINE } from "./fastly-names.ts";

export function fastlyFiles(edge: Edge): EdgeFile[] {
  const tree = treeOf(edge);
  const parts = [comment(HEAD), appRules(edge.apps), FILE_SUBROUTINE, receive(tree), fetch(edge, tree), deliver(edge)];
  return [{ name: "precast.vcl", text: sections(parts) }];
}

/** Throws Error without `--tree-url`. */
function treeOf({ treeUrl }: Edge): URL {
  if (treeUrl === null)
    throw new Error("Fastly has no files itself. Say where a static host serves the tree: --tree-url URL.");
  return new URL(treeUrl);
}

const HEAD = [
  "The files of a Precast tree from a static host, everything else from `precast serve`, for Fastly.",
  "Made by `precast edge fastly`.",
  "",
  "Fastly can name all files but those of filter values that are sent percent-encoded; and parameters that change nothing",
  "(utm_source) it does not look through. What it cannot name, and what is no file, the origin answers, with the same bytes.",
  "",
  "To put it in place:",
  "  1. Let a bucket or a web server serve the folder of the tree, `.precast` left out.",
  "  2. Give the service two hosts: `precast_tree`, which is that one, and `precast_origin`, which is `precast serve`; both",
  "     with shielding off, and with their names as host override.",
  "  3. Upload this file as custom VCL, and make it the main file.",
  "  4. After a build, purge what has changed (out/.precast/changes.json names the files).",
  "When an app is added, make it again.",
  "",
  "This file was never run on Fastly, and no compiler but Fastly's own can check it: try it on a service of its own first.",
];

function receive(tree: URL): string {
  return `sub vcl_recv {
  #FASTLY recv
  if (req.restarts > 0) {
    # There is no such file, or the static host is away.
    set req.url = req.http.X-Precast-Target;
    unset req.http.X-Precast-File;
    set req.backend = F_precast_origin;
    return(pass);
  }
  unset req.http.X-Precast-App;
  unset req.http.X-Precast-File;
  unset req.http.X-Precast-Target;
  if (req.method == "OPTIONS") {
    error 601;
  }
  if (req.method == "GET" || req.method == "HEAD") {
    call precast_app;
  }
  if (req.http.X-Precast-App) {
    call precast_file;
  }
  if (!req.http.X-Precast-File) {
    set req.backend = F_precast_origin;
    return(pass);
  }
  set req.http.X-Precast-Target = req.url;
  set req.url = "${treePathOf(tree)}" req.http.X-Precast-App "/v1/" req.http.X-Precast-File;
  set req.backend = F_precast_tree;
  # The origin knows neither ranges nor dates.
  unset req.http.Range;
  unset req.http.If-Modified-Since;
  unset req.http.Cookie;
  return(lookup);
}

# The path in the tree names the app, too.
sub vcl_hash {
  #FASTLY hash
  set req.hash += req.url;
  return(hash);
}`;
}

const fetch = ({ policy }: Edge, tree: URL) => `sub vcl_miss {
  #FASTLY miss
  set bereq.http.Host = "${tree.host}";
  unset bereq.http.X-App-Key;
  unset bereq.http.X-Precast-App;
  unset bereq.http.X-Precast-Target;
  return(fetch);
}

sub vcl_pass {
  #FASTLY pass
  unset bereq.http.X-Precast-App;
  unset bereq.http.X-Precast-Target;
  return(pass);
}

# As long as --cdn-cache-control says. What is no file is asked for again.
sub vcl_fetch {
  #FASTLY fetch
  if (!req.http.X-Precast-File) {
    return(pass);
  }
  if (beresp.status != 200) {
    restart;
  }
  unset beresp.http.Set-Cookie;
  # The tags by which \`precast deploy --purge fastly\` purges: it uploads them as metadata.
  if (beresp.http.x-amz-meta-cache-tag) {
    set beresp.http.Surrogate-Key = regsuball(beresp.http.x-amz-meta-cache-tag, ",", " ");
    unset beresp.http.x-amz-meta-cache-tag;
  }
  unset beresp.http.Vary;
  set beresp.ttl = ${secondsOf(policy.cdns, "max-age")}s;
  set beresp.stale_while_revalidate = ${secondsOf(policy.cdns, "stale-while-revalidate")}s;
  set beresp.stale_if_error = ${secondsOf(policy.cdns, "stale-if-error")}s;
  return(deliver);
}`;

function deliver({ policy }: Edge): string {
  return `sub vcl_deliver {
  #FASTLY deliver
  if (req.http.X-Precast-File) {
    unset resp.http.Last-Modified;
    unset resp.http.Accept-Ranges;
${setHeaders("resp", fileHeaders(policy))}
  }
  return(deliver);
}

sub vcl_error {
  #FASTLY error
  if (obj.status == 601) {
    set obj.status = 204;
    set obj.response = "No Content";
${setHeaders("obj", preflightHeaders())}
    return(deliver);
  }
  # The static host is away.
  if (req.http.X-Precast-File && req.restarts == 0) {
    restart;
  }
}`;
}
