/** The studio's page: its frame, with the choice of the app and of the view, and the view that the address names. */
import { type ComponentType, render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { App } from "../../../shared/api/catalog.ts";
import { Content } from "./content.tsx";
import { Loaded, useData, type ViewProps } from "./data.tsx";
import { Explorer } from "./explorer.tsx";
import { Health } from "./health.tsx";
import { Reference } from "./reference.tsx";
import { useRoute, writeHash } from "./route.ts";
import { Tree } from "./tree.tsx";
import { Usage } from "./usage.tsx";

/** By the name in the address, in the order of the menu. */
const VIEWS: Readonly<Record<string, { readonly title: string; readonly View: ComponentType<ViewProps> }>> = {
  explorer: { title: "Explorer", View: Explorer },
  content: { title: "Content", View: Content },
  usage: { title: "Usage", View: Usage },
  tree: { title: "Tree", View: Tree },
  health: { title: "Health", View: Health },
  reference: { title: "Reference", View: Reference },
};
const FIRST = Object.keys(VIEWS)[0] as string;

function Studio() {
  const apps = useData<readonly App[]>("apps");
  return <Loaded of={apps}>{(all) => (all.length === 0 ? <NoApp /> : <Frame apps={all} />)}</Loaded>;
}

function NoApp() {
  return (
    <main>
      <h1>Precast studio</h1>
      <p>
        There is no app in the database yet: import a bundle with <code>precast import &lt;folder&gt;</code>.
      </p>
    </main>
  );
}

function Frame({ apps }: { readonly apps: readonly App[] }) {
  const { view: asked, params } = useRoute();
  const name = asked in VIEWS ? asked : FIRST;
  const { title, View } = VIEWS[name] as (typeof VIEWS)[string];
  const app = apps.find(({ key }) => key === params.get("app")) ?? (apps[0] as App);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · ${app.name} · Precast studio`;
    // Screen readers and the keyboard go on at what a link of the menu has opened.
    if (document.activeElement?.closest("nav")) heading.current?.focus();
  }, [title, app]);
  return (
    <>
      <header>
        <a class="skip" href={`${writeHash(name, params)}`} onClick={(event) => skip(event, heading.current)}>
          Skip to the content
        </a>
        <strong>Precast studio</strong>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([key, { title }]) => (
            <a key={key} href={writeHash(key, { app: app.key })} aria-current={key === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <label>
          App{" "}
          <select value={app.key} onChange={({ currentTarget }) => go(name, currentTarget.value)}>
            {apps.map(({ key, name }) => (
              <option key={key} value={key}>
                {name} ({key})
              </option>
            ))}
          </select>
        </label>
      </header>
      <main>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <View key={`${name} ${app.key}`} app={app} />
      </main>
    </>
  );
}

function go(view: string, app: string): void {
  location.hash = writeHash(view, { app });
}

function skip(event: Event, heading: HTMLElement | null): void {
  event.preventDefault();
  heading?.focus();
}

render(<Studio />, document.body);
