/** For Vercel: files of the tree are files of the deployment. */
export default function middleware(request) {
  return answer(request, function (file) {
    return readSite(request, file);
  });
}

export const config = { matcher: "/api/v1/:path*" };
