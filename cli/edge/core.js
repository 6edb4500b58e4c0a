/**
 * The mapping core: maps a request to the file of the tree that answers it. Every configuration that can run JavaScript
 * contains this text, so it is ES5, needs nothing of its host and knows no content. A file name is computed from the
 * value as it is spelled; for a spelling that is not canonical, that file does not exist. All requests that are not
 * certain to have a file go to the origin. Source: shared/contract.md sections 3, 5 and 8.
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

/** SHA-256 for the core, in ES5: some hosts have only an asynchronous one, some have none. Source: FIPS 180-4. */

/** Returns the hash as 32 bytes. */
function sha256(bytes) {
  var state = [1779033703, -1150833019, 1013904242, -1521486534, 1359893119, -1694144372, 528734635, 1541459225];
  var padded = padded512(bytes);
  var digest = [];
  var i;
  for (i = 0; i < padded.length; i += 64) addBlock(state, padded, i);
  for (i = 0; i < 32; i++) digest.push((state[i >> 2] >>> (24 - (i % 4) * 8)) & 255);
  return digest;
}

/** Appends a one bit, zeros, and the length in bits. A target has fewer than 2^16 bytes. */
function padded512(bytes) {
  var padded = bytes.concat([128]);
  var bits = bytes.length * 8;
  while (padded.length % 64 !== 56) padded.push(0);
  return padded.concat([0, 0, 0, 0, bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255]);
}

function addBlock(state, bytes, from) {
  var words = wordsOf(bytes, from);
  var s = state.slice();
  var i, one, two;
  for (i = 0; i < 64; i++) {
    one = s[7] + mixed(s[4], 6, 11, 25) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + ROUNDS[i] + words[i];
    two = mixed(s[0], 2, 13, 22) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = [(one + two) | 0, s[0], s[1], s[2], (s[3] + one) | 0, s[4], s[5], s[6]];
  }
  for (i = 0; i < 8; i++) state[i] = (state[i] + s[i]) | 0;
}

function wordsOf(bytes, from) {
  var words = [];
  var i, at, near, far;
  for (i = 0; i < 16; i++) {
    at = from + i * 4;
    words.push((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]);
  }
  for (i = 16; i < 64; i++) {
    near = words[i - 2];
    far = words[i - 15];
    near = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
    far = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
    words.push((words[i - 16] + far + words[i - 7] + near) | 0);
  }
  return words;
}

function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

function mixed(word, a, b, c) {
  return turned(word, a) ^ turned(word, b) ^ turned(word, c);
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
var ROUNDS = (
  "428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5" +
  " d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174" +
  " e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da" +
  " 983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967" +
  " 27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85" +
  " a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070" +
  " 19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3" +
  " 748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2"
)
  .split(" ")
  .map(function (hex) {
    return parseInt(hex, 16) | 0;
  });
