/** For Netlify: files of the tree are files of the site. */
export default function (request) {
  return answer(request, function (file) {
    return readSite(request, file);
  });
}

export const config = { path: "/api/v1/*" };
