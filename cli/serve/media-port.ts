/** The port that shows media, of a server or of the studio. */
import type { MediaServer } from "../../server/media.ts";
import type { Settings } from "../../shared/config.ts";
import { findMediaFolder } from "../../shared/media.ts";
import { explainPort } from "../errors.ts";

type MediaSettings = Settings<"mediaPort" | "mediaHost" | "dataDir" | "mediaBaseUrl">;

/** Its code is imported only when a port is set; null when none is. */
export async function openMediaPort(
  { mediaPort: port, mediaHost: host, dataDir }: MediaSettings,
  onError: (error: unknown) => void,
): Promise<MediaServer | null> {
  if (port === null) return null;
  const { openMedia } = await import("../../server/media.ts");
  return explainPort("media", { host, port }, (at) => openMedia({ ...at, folder: findMediaFolder(dataDir), onError }));
}

/** Answers lead there only by their media base URL, and that is part of what was built. */
export function describeMediaPort({ url }: MediaServer, { mediaBaseUrl }: MediaSettings): string {
  if (mediaBaseUrl !== null) return `Media: ${url}`;
  const address = url.replace("127.0.0.1", "localhost");
  return `Media: ${url} (for apps without media_base_url, build and serve with --media-base-url ${address})`;
}
