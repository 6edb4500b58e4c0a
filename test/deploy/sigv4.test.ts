/** Our signatures, and the check of them in the S3 stand-in (AWS Signature Version 4), on examples that Amazon publishes. */
import { expect, test } from "vitest";
import { openSigner } from "../../cli/deploy/signature.ts";
import { type Signed, signatureProblem } from "../support/sigv4.ts";

const KEYS = { accessKeyId: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
const SCOPE = { region: "us-east-1", service: "s3" };
const THEN = new Date("2013-05-24T00:00:00Z");
/** "GET Object" of the Amazon S3 API Reference. */
const GET: Signed = {
  method: "GET",
  target: "/test.txt",
  headers: {
    host: "examplebucket.s3.amazonaws.com",
    range: "bytes=0-9",
    "x-amz-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "x-amz-date": "20130524T000000Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  body: Buffer.alloc(0),
};
/** "GET Bucket (List Objects)". */
const LIST: Signed = {
  ...GET,
  target: "/?max-keys=2&prefix=J",
  headers: {
    ...GET.headers,
    range: undefined,
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
};

/** "PUT Object": a path with a character that the signature must encode. */
const PUT: Signed = {
  method: "PUT",
  target: "/test$file.text",
  headers: {
    host: "examplebucket.s3.amazonaws.com",
    date: "Fri, 24 May 2013 00:00:00 GMT",
    "x-amz-storage-class": "REDUCED_REDUNDANCY",
    "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    "x-amz-date": "20130524T000000Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  body: Buffer.from("Welcome to Amazon S3."),
};

test.each([
  ["GET Object", GET],
  ["GET Bucket", LIST],
  ["PUT Object", PUT],
])("our signature of %s is that of Amazon's example", (_, { method, target, headers }) => {
  const { authorization, host: _host, "x-amz-date": _date, range, ...own } = headers as Record<string, string>;
  const given = range === undefined ? own : { ...own, range };
  const url = new URL(`https://${headers.host}${target}`);
  const sign = openSigner({ ...KEYS, sessionToken: null }, SCOPE);
  expect(sign({ method, url, headers: given }, THEN).headers.authorization?.replaceAll(", ", ",")).toBe(authorization);
});

test("accepts the signatures of Amazon's examples", () => {
  expect(signatureProblem(GET, KEYS, SCOPE, THEN)).toBe(null);
  expect(signatureProblem(LIST, KEYS, SCOPE, THEN)).toBe(null);
  expect(signatureProblem(PUT, KEYS, SCOPE, THEN)).toBe(null);
});

test.each<[string, Partial<Signed>, string]>([
  ["another method", { method: "PUT" }, "SignatureDoesNotMatch"],
  ["another path", { target: "/test.tx" }, "SignatureDoesNotMatch"],
  ["a query", { target: "/test.txt?acl" }, "SignatureDoesNotMatch"],
  ["another header", { headers: { ...GET.headers, range: "bytes=0-8" } }, "SignatureDoesNotMatch"],
  ["another body", { body: Buffer.from("x") }, "XAmzContentSHA256Mismatch"],
  ["an unsigned x-amz header", { headers: { ...GET.headers, "x-amz-acl": "public" } }, "AccessDenied"],
  ["no signature", { headers: { ...GET.headers, authorization: undefined } }, "AccessDenied"],
])("refuses Amazon's example with %s", (_, change, problem) => {
  expect(signatureProblem({ ...GET, ...change }, KEYS, SCOPE, THEN)).toBe(problem);
});

test("refuses a wrong secret, access key, region or time, and a missing session token", () => {
  expect(signatureProblem(GET, { ...KEYS, secretAccessKey: "x" }, SCOPE, THEN)).toBe("SignatureDoesNotMatch");
  expect(signatureProblem(GET, { ...KEYS, accessKeyId: "x" }, SCOPE, THEN)).toBe("InvalidAccessKeyId");
  expect(signatureProblem(GET, KEYS, { ...SCOPE, region: "eu-west-1" }, THEN)).toBe("AuthorizationHeaderMalformed");
  expect(signatureProblem(GET, KEYS, SCOPE, new Date("2013-05-24T00:16:00Z"))).toBe("RequestTimeTooSkewed");
  expect(signatureProblem(GET, { ...KEYS, sessionToken: "t" }, SCOPE, THEN)).toBe("InvalidToken");
});
