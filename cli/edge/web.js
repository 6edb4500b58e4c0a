/**
 * For hosts with Request and Response. `readFile` returns the bytes of a file of the tree, or null when there is none. If
 * the tree cannot be read, the origin answers.
 */
async function answer(request, readFile) {
  var target = targetOf(request.url);
  var found = mapRequest(APPS, request.method, target, request.headers.get("X-App-Key"));
  if (found === "preflight") return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
  var bytes = found === "origin" ? null : await readFile(found).catch(nothing);
  if (bytes !== null) return fileAnswer(request, bytes);
  return isKept(target) ? askOrigin(request, target).catch(unavailable) : refusal(NOT_FOUND);
}

/** `fetch` resolves dot segments and replaces backslashes: the answer would be that of another request. */
function isKept(target) {
  return !/(^|\/)(\.|%2e){1,2}(\/|$)|\\/i.test(target.replace(/\?.*$/, "")) && target.indexOf("#") < 0;
}

function unavailable() {
  return refusal(UNAVAILABLE);
}

function refusal(made) {
  return new Response(made.body, { status: made.status, headers: made.headers });
}

function nothing() {
  return null;
}

/** Path and query as they were sent, or as the host has normalised them. */
function targetOf(url) {
  return /^[a-z]+:\/\/[^/?#]*(.*)$/.exec(url)[1] || "/";
}

/**
 * The origin ignores request bodies. Headers that are for one connection stay here, because some hosts refuse to send
 * them. The origin is asked for an uncompressed answer, because some hosts decode a compressed one but keep its headers;
 * each host compresses answers itself. No cache is used, because most caches ignore the app key.
 */
function askOrigin(request, target) {
  var headers = new Headers(request.headers);
  NOT_FORWARDED.forEach(function (name) {
    headers.delete(name);
  });
  headers.set("Accept-Encoding", "identity");
  return fetch(ORIGIN + target, { method: request.method, headers: headers, redirect: "manual", cache: "no-store" });
}

var NOT_FORWARDED = "Host Connection Keep-Alive TE Upgrade Expect Content-Length Transfer-Encoding".split(" ");

async function fileAnswer(request, bytes) {
  var etag = await etagOf(bytes);
  var headers = new Headers(FILE_HEADERS);
  headers.set("ETag", etag);
  if (isKnown(request.headers.get("If-None-Match"), etag)) {
    headers.delete("Content-Type");
    return new Response(null, { status: 304, headers: headers });
  }
  return new Response(request.method === "HEAD" ? null : bytes, { headers: headers });
}

/** Returns the ETag that the origin sends for these bytes. */
async function etagOf(bytes) {
  var digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  var text = btoa(String.fromCharCode.apply(null, digest));
  return '"' + text.replace(/\+/g, "-").replace(/\//g, "_").slice(0, 27) + '"';
}

/** RFC 9110 section 13.1.2. */
function isKnown(ifNoneMatch, etag) {
  return (ifNoneMatch || "").split(",").some(function (part) {
    var tag = part.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
