/** An HTTPS server with an invalid certificate: self-signed, and for another name or expired. */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

/** Protects nothing: it signs the two certificates below, which only these tests use. */
export const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgiuadx8DDQhaIyHSe
zclOfJ2I0d4YzKvM8DomcEUzd2GhRANCAAQHtKa/P8UOjl2P9uHn9SL4jp/K12ou
yjAoT2yuir6IFwL0mXG90u4dgQw8J0gZdIFKZykeVKkT70nPiOuGIdy8
-----END PRIVATE KEY-----
`;

export type Tls = { readonly url: string; readonly close: () => Promise<void> };

export async function startTls(cert: string): Promise<Tls> {
  const server = createServer({ key: KEY, cert }, (_, response) => void response.writeHead(404).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** For other.test, valid from 2020 to 2120. */
export const OF_ANOTHER = `-----BEGIN CERTIFICATE-----
MIIBUjCB+aADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCm90aGVyLnRl
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
Cm90aGVyLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQHtKa/P8UOjl2P
9uHn9SL4jp/K12ouyjAoT2yuir6IFwL0mXG90u4dgQw8J0gZdIFKZykeVKkT70nP
iOuGIdy8ozgwNjAVBgNVHREEDjAMggpvdGhlci50ZXN0MB0GA1UdDgQWBBSnI7Jh
3W9Np71c9a/9ZFY+Tjs9KTAKBggqhkjOPQQDAgNIADBFAiBXW3cfseA+bUyrP5N4
G0QvsK6ZBGtcsAK0XsAT2DB/ZgIhAO+RvhwwYkOLag/0Qg1W6o88ZdWfNcsSAUm0
B+3LKgHn
-----END CERTIFICATE-----
`;

/** For 127.0.0.1, valid on one day of 2020. */
export const EXPIRED = `-----BEGIN CERTIFICATE-----
MIIBSDCB76ADAgECAgECMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCTEyNy4wLjAu
MTAeFw0yMDAxMDEwMDAwMDBaFw0yMDAxMDIwMDAwMDBaMBQxEjAQBgNVBAMMCTEy
Ny4wLjAuMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAe0pr8/xQ6OXY/24ef1
IviOn8rXai7KMChPbK6KvogXAvSZcb3S7h2BDDwnSBl0gUpnKR5UqRPvSc+I64Yh
3LyjMjAwMA8GA1UdEQQIMAaHBH8AAAEwHQYDVR0OBBYEFKcjsmHdb02nvVz1r/1k
Vj5OOz0pMAoGCCqGSM49BAMCA0gAMEUCIG0aOE6KanzYpcTzxwClx8DPAlJn2Ni+
mKj+dBLwCdI5AiEAkifiyy8tJYgeAQy7tvtnjhWK0cT4tau8LCc3Lvum/IA=
-----END CERTIFICATE-----
`;
