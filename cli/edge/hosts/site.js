/** Files beside the function: asked for at their own paths, where the function is not. */
async function readSite(request, file) {
  var response = await fetch(new URL(file, request.url), { redirect: "manual" });
  return response.status === 200 ? response.arrayBuffer() : null;
}
