/** Media in the data directory: where an import lays the files of an app, for a server to show and a deploy to upload. */
import { join } from "node:path";
import { isFile, namesIn } from "./files.ts";

/** The folder of all media. Below it, files lie as in their addresses (shared/contract.md section 2). */
export function findMediaFolder(dataDir: string): string {
  return join(dataDir, "media");
}

/** Relative to the folder of all media, to their base URL, and to the target of a deploy. */
export function nameMediaFolder(appKey: string): string {
  return `${appKey}/cms/media`;
}

/** Whether a file may have this name: it becomes part of paths, on any system, and hidden files are not shown. */
export function isMediaName(name: string): boolean {
  return /^[^./\\\p{Cc}][^/\\\p{Cc}]*$/u.test(name);
}

/** Names of the media of an app, sorted. */
export function listMedia(dataDir: string, appKey: string): string[] {
  const folder = join(findMediaFolder(dataDir), nameMediaFolder(appKey));
  return namesIn(folder)
    .filter((name) => isMediaName(name) && isFile(join(folder, name)))
    .sort();
}

/** The library that knows content types is loaded only where files are sent. */
export async function loadMediaTypes(): Promise<(name: string) => string> {
  const { default: mime } = await import("mime");
  return (name) => {
    const type = mime.getType(name) ?? "application/octet-stream";
    return type.startsWith("text/") ? `${type}; charset=utf-8` : type;
  };
}
