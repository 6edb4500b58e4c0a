/**
 * The viewer request. CloudFront looks for a path in the bucket first, and requests it from the server when the bucket
 * lacks it. Only paths of the API may reach the bucket: otherwise anybody who guesses a path gets its file without a key.
 * A bucket acts on some parameters, so only those that the server needs are forwarded.
 */
function handler(event) {
  var request = event.request;
  var query = request.rawQueryString();
  var header = request.headers["x-app-key"];
  var key = header === undefined || header.multiValue !== undefined ? null : header.value;
  var found = mapRequest(foldersFor(key), request.method, request.uri + (query === undefined ? "" : "?" + query), key);
  if (found === "preflight") return { statusCode: 204, statusDescription: "No Content", headers: PREFLIGHT_HEADERS };
  if (found === "origin" && !/^\/api\//.test(request.uri)) return NOT_FOUND;
  if (found !== "origin") request.uri = found;
  dropParameters(request.querystring, found);
  return request;
}

/** If a function has no room for all keys, any well-formed key is accepted: the server refuses unknown ones. */
function foldersFor(key) {
  var folders = {};
  if (APPS !== null) return APPS;
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(key)) folders[key] = segmentOf(key);
  return folders;
}

/**
 * The server needs all parameters of the API for a request that is no file. For a file it needs none, but it cannot read
 * the value of a filter from a hash. A name that cannot be decoded stays: it may be that of a filter with an error.
 */
function dropParameters(querystring, found) {
  var needed = /\/h-[0-9a-f]{64}\.json$/.test(found) ? /^filter\[/ : /(?!)/;
  if (found === "origin") needed = /^(filter|sort$|page$|per_page$|fields$|populate$|q$)/;
  Object.keys(querystring).forEach(function (name) {
    var decoded = decode(name.replace(/\+/g, "%20"));
    if (decoded !== null && !needed.test(decoded)) delete querystring[name];
  });
}
