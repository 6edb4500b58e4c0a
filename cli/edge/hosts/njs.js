/**
 * For nginx: returns the file of a request, or a name that no file has. njs sees both of two X-App-Key headers, even
 * where nginx sees only one.
 */
function file(r) {
  var keys = r.rawHeadersIn.filter(function (header) {
    return header[0].toLowerCase() === "x-app-key";
  });
  var found = mapRequest(APPS, r.method, r.variables.request_uri, keys.length === 1 ? keys[0][1] : null);
  return found.charAt(0) === "/" ? found : "/-";
}

export default { file };
