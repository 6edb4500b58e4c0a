/** For Cloudflare Workers: the tree is among the static assets (ASSETS), or in an R2 bucket (TREE). */
async function readTree(env, file) {
  var found = env.ASSETS === undefined ? await env.TREE.get(file.slice(1)) : await readAsset(env.ASSETS, file);
  return found === null ? null : found.arrayBuffer();
}

async function readAsset(assets, file) {
  var response = await assets.fetch("https://tree.invalid" + file);
  return response.status === 200 ? response : null;
}
