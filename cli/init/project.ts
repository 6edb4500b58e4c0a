/** The files of a new project: a bundle, settings, the scripts that serve it, and a workflow that tests it. */
import type { TemplateName } from "../../shared/settings/common.ts";
import { makeEntryId, TEMPLATES, type TemplateType } from "./templates.ts";

export type ProjectFile = { readonly path: string; readonly text: string };

export type Project = {
  readonly template: TemplateName;
  /** The app's. */
  readonly key: string;
  readonly name: string;
  /** Of Precast. */
  readonly version: string;
};

/** The folder of the bundle. */
const CONTENT = "content";

export function writeProject(project: Project): ProjectFile[] {
  const { key, name, template, version } = project;
  const types = TEMPLATES[template];
  return [
    { path: `${CONTENT}/app.json`, text: formatJson({ key, name }) },
    ...types.flatMap(writeType),
    { path: "precast.config.json", text: formatJson({ dataDir: ".precast", out: "out" }) },
    { path: "package.json", text: formatJson(describePackage(version)) },
    { path: ".gitignore", text: "node_modules/\n.precast/\nout/\n.env\n" },
    { path: ".github/workflows/precast.yml", text: WORKFLOW },
    { path: "README.md", text: writeReadme(project, types) },
  ];
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function writeType({ slug, definition, entries }: TemplateType): ProjectFile[] {
  const lines = entries.map(({ data, day, isDraft = false }) => {
    const stamp = `${day}T09:00:00Z`;
    const status = isDraft ? { status: "draft", published_at: null } : { status: "published", published_at: stamp };
    const id = makeEntryId(slug, String(data.slug));
    return `${JSON.stringify({ id, ...status, created_at: stamp, updated_at: stamp, data })}\n`;
  });
  return [
    { path: `${CONTENT}/content_types/${slug}.json`, text: formatJson(definition) },
    { path: `${CONTENT}/entries/${slug}.ndjson`, text: lines.join("") },
  ];
}

const IMPORT = `precast import ${CONTENT} --prune`;

function describePackage(version: string) {
  return {
    private: true,
    scripts: {
      start: `${IMPORT} && precast build && precast serve --watch`,
      build: `${IMPORT} && precast build`,
      check: "precast verify",
    },
    dependencies: { precast: version },
  };
}

const WORKFLOW = `# Imports the content into an embedded database, builds the tree, and compares it with live answers.
name: Precast
on: [push, pull_request]
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-node@v4
        with:
          node-version: 22
      - run: npm ci
      - run: npx ${IMPORT}
      - run: npx precast build
      - run: npx precast verify
`;

function writeReadme({ key, name }: Project, [first]: readonly TemplateType[]): string {
  return `# ${name}

    npm install     once; commit package-lock.json, which the workflow needs
    npm start       imports ${CONTENT}/, builds out/, and answers on http://127.0.0.1:3000
    npm run build   imports and builds, for a CDN; npm run check compares what was built with live answers
    curl -H 'X-App-Key: ${key}' 'http://127.0.0.1:3000/api/v1/${first?.slug}'

\`${CONTENT}/content_types\` has the types, \`${CONTENT}/entries\` an entry a line. Run \`npm run build\` after a change.
Settings are in \`precast.config.json\`; \`npx precast config\` shows them all. Secrets go into \`.env\`.
`;
}
