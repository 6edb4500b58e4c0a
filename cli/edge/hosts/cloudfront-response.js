/**
 * The viewer response: adds the headers of files to answers of the bucket only. Every 200 and 304 of the server says
 * whether it is counted; a bucket may have a CORS policy of its own.
 */
function handler(event) {
  var response = event.response;
  var fromServer = response.headers["x-request-counted"] !== undefined;
  if (fromServer || (response.statusCode !== 200 && response.statusCode !== 304)) return response;
  Object.keys(FILE_HEADERS).forEach(function (name) {
    if (response.statusCode === 200 || name !== "content-type") response.headers[name] = FILE_HEADERS[name];
  });
  return response;
}
