/** Reads a file of the site. It is requested at its own path, for which the function does not run. */
async function readSite(request, file) {
  var response = await fetch(new URL(file, request.url), { redirect: "manual" });
  return response.status === 200 ? response.arrayBuffer() : null;
}
