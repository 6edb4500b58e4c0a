export default {
  fetch: function (request, env) {
    return answer(request, function (file) {
      return readTree(env, file);
    });
  },
};
