/**
 * The mapping core: maps a request to the file of the tree that answers it. Every configuration that can run JavaScript
 * contains this text, so it is ES5, needs nothing of its host and knows no content. A file name is computed from the
 * value as it is spelled; for a spelling that is not canonical, that file does not exist. All requests that are not
 * certain to have a file go to the origin. Source: contract.md sections 3, 5 and 8.
 */

/**
 * `apps` holds the folder of each app by its key. `target` is path and query as they were sent. Returns "preflight",
 * "origin", or the path of a file in the tree. That file may be missing.
 */
function mapRequest(apps, method, target, appKey) {
  if (method === "OPTIONS") return "preflight";
  if (method !== "GET" && method !== "HEAD") return "origin";
  if (typeof appKey !== "string" || !Object.prototype.hasOwnProperty.call(apps, appKey)) return "origin";
  var file = fileOfTarget(target);
  return file === null ? "origin" : "/" + apps[appKey] + "/v1/" + file;
}

/** Returns the file of a target, relative to the folder of its app, or null when the origin has to decide. */
function fileOfTarget(target) {
  if (target.length > 16384 || !/^\/[\x21-\x7e]*$/.test(target) || target.indexOf("#") >= 0) return null;
  var mark = target.indexOf("?");
  var segments = readPath(mark < 0 ? target : target.slice(0, mark));
  var pairs = readQuery(mark < 0 ? "" : target.slice(mark + 1));
  if (segments === null || pairs === null) return null;
  if (segments[0] === "_schemas") return schemaFile(segments);
  if (!isSlug(segments[0])) return null;
  return segments.length === 1 ? listFile(segments[0], pairs) : entryFile(segments[0], segments[1], pairs);
}

/** Returns the one or two segments after `/api/v1`, decoded once, or null when the path is not one of the API. */
function readPath(path) {
  var segments = path.replace(/\/$/, "").split("/");
  var i;
  for (i = 0; i < segments.length; i++) {
    segments[i] = decode(segments[i]);
    if (segments[i] === null || (i > 0 && segments[i] === "")) return null;
  }
  if (segments[1] !== "api" || segments[2] !== "v1") return null;
  return segments.length === 4 || segments.length === 5 ? segments.slice(3) : null;
}

/** Returns names and values alternately, without empty values. Null when one of them cannot be decoded. */
function readQuery(query) {
  var parts = query.replace(/\+/g, "%20").split("&");
  var pairs = [];
  var i, sign, name, value;
  for (i = 0; i < parts.length; i++) {
    sign = parts[i].indexOf("=");
    name = decode(sign < 0 ? parts[i] : parts[i].slice(0, sign));
    value = sign < 0 ? "" : decode(parts[i].slice(sign + 1));
    if (name === null || value === null) return null;
    if (value !== "") pairs.push(name, value);
  }
  return pairs;
}

/** Returns null for text that is not percent-encoded UTF-8. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch (_) {
    return null;
  }
}

function isSlug(text) {
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(text);
}

/** Catalog and schemas ignore all parameters. */
function schemaFile(segments) {
  if (segments.length === 1) return "_schemas.json";
  return isSlug(segments[1]) ? "_schemas/" + segments[1] + ".json" : null;
}

function entryFile(slug, text, pairs) {
  var id = text.toLowerCase();
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return null;
  return hasParameter(pairs, "populate") ? null : slug + "/entry/" + id + ".json";
}

function hasParameter(pairs, name) {
  var i;
  for (i = 0; i < pairs.length; i += 2) if (pairs[i] === name) return true;
  return false;
}

/** Returns the file of a list with at most one page, filter or sort. Of a repeated parameter, the last one counts. */
function listFile(slug, pairs) {
  var asked = { page: null, sort: null, field: null, value: null };
  var i;
  for (i = 0; i < pairs.length; i += 2) if (!readParameter(asked, pairs[i], pairs[i + 1])) return null;
  if ((asked.page !== null) + (asked.sort !== null) + (asked.field !== null) > 1) return null;
  if (asked.field !== null) return filterFile(slug, asked.field, asked.value);
  if (asked.sort !== null) return sortFile(slug, asked.sort);
  return pageFile(slug, asked.page === null ? "1" : asked.page);
}

/** Returns false for parameters that no file answers. Parameters that lists do not define are ignored. */
function readParameter(asked, name, value) {
  if (name === "per_page" || name === "fields") return false;
  if (name === "page") asked.page = value;
  else if (name === "sort") asked.sort = value;
  else if (name === "filter" || name.slice(0, 7) === "filter[") return readFilter(asked, name, value);
  return true;
}

/** `filter[f]` and `filter[f][eq]` are the same parameter. */
function readFilter(asked, name, value) {
  var match = /^filter\[([a-z][a-z0-9_]{0,62})\](\[eq\])?$/.exec(name);
  if (match === null || (asked.field !== null && asked.field !== match[1])) return false;
  asked.field = match[1];
  asked.value = value;
  return true;
}

function filterFile(slug, field, value) {
  return value.indexOf("\0") >= 0 ? null : slug + "/filter/" + field + "/" + segmentOf(value) + ".json";
}

function sortFile(slug, sort) {
  return /^-?[a-z][a-z0-9_]{0,62}$/.test(sort) ? slug + "/sort/" + sort + ".json" : null;
}

/** Returns null for a number with more digits than a page number can have. */
function pageFile(slug, page) {
  var match = /^0*([1-9][0-9]{0,15})$/.exec(page);
  return match === null ? null : slug + "/page/" + match[1] + ".json";
}

/** Returns the segment of a path that stands for this string. */
function segmentOf(text) {
  var bytes = bytesOf(text);
  if (bytes.length > 64) return "h-" + hexOf(sha256(bytes));
  return /^[a-z0-9_-]*$/.test(text) ? "s-" + text : "x-" + hexOf(bytes);
}

/** Returns the UTF-8 bytes of a text. */
function bytesOf(text) {
  var encoded = encodeURIComponent(text);
  var bytes = [];
  var i;
  for (i = 0; i < encoded.length; i++) {
    if (encoded.charAt(i) !== "%") bytes.push(encoded.charCodeAt(i));
    else {
      bytes.push(parseInt(encoded.slice(i + 1, i + 3), 16));
      i += 2;
    }
  }
  return bytes;
}

function hexOf(bytes) {
  var hex = "";
  var i;
  for (i = 0; i < bytes.length; i++) hex += (bytes[i] + 256).toString(16).slice(1);
  return hex;
}
