/** The page of a report: usage and tree of an app, one after the other, from the data in its own file. */
import { render } from "preact";
import { useState } from "preact/hooks";
import type { App } from "../../../shared/api/catalog.ts";
import type { ReportHead } from "../report.ts";
import { Loaded, Time, useData } from "./data.tsx";
import { Tree } from "./tree.tsx";
import { Usage } from "./usage.tsx";

function Report() {
  const head = useData<ReportHead>("head");
  const [chosen, choose] = useState(0);
  return (
    <Loaded of={head}>
      {({ apps, made_at, version }) => {
        const app = apps[chosen] as App;
        return (
          <main key={app.key}>
            <h1>
              {app.name} <span class="quiet">({app.key})</span>
            </h1>
            <p class="quiet">
              Precast {version}, <Time of={made_at} /> UTC
            </p>
            {apps.length === 1 ? null : (
              <label>
                App{" "}
                <select value={chosen} onChange={({ currentTarget }) => choose(currentTarget.selectedIndex)}>
                  {apps.map(({ key, name }, index) => (
                    <option key={key} value={index}>
                      {name} ({key})
                    </option>
                  ))}
                </select>
              </label>
            )}
            <h2>Usage</h2>
            <Usage app={app} />
            <h2>Tree</h2>
            <Tree app={app} />
          </main>
        );
      }}
    </Loaded>
  );
}

render(<Report />, document.body);
