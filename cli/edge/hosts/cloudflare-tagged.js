/** Answers from files have the same tags as the origin's: that of the app, and that of the type or the catalog. */
function tagsOf(key, file) {
  return key + "," + key + "/" + /^\/[^/]+\/v1\/(?:_schemas\/)?([^/.]+)/.exec(file)[1];
}

export default {
  fetch: async function (request, env) {
    var tags = null;
    var response = await answer(request, async function (file) {
      var bytes = await readTree(env, file);
      if (bytes !== null) tags = tagsOf(request.headers.get("X-App-Key"), file);
      return bytes;
    });
    if (tags !== null) response.headers.set("Cache-Tag", tags);
    return response;
  },
};
