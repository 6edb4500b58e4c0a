/** For nginx: the file of a request, or one that is not there. njs has seen two X-App-Key headers where nginx sees one. */
function file(r) {
  var keys = r.rawHeadersIn.filter(function (header) {
    return header[0].toLowerCase() === "x-app-key";
  });
  var found = mapRequest(APPS, r.method, r.variables.request_uri, keys.length === 1 ? keys[0][1] : null);
  return found.charAt(0) === "/" ? found : "/-";
}

export default { file };
