/** What a request costs and why, while it is typed: said by the code that the server counts with. */
import { type App, findType } from "../../../shared/api/catalog.ts";
import { findStatus, isRefusal, MAX_TARGET_SIZE, targetTooLong } from "../../../shared/api/errors.ts";
import { findNearestFree } from "../../../shared/api/nearest-free.ts";
import { planRequest } from "../../../shared/api/plan.ts";
import { priceRequest } from "../../../shared/api/pricing.ts";
import { readRequest } from "../../../shared/api/request.ts";
import { findIgnored, findWarning } from "../../../shared/api/warning.ts";

/** What is known of a text that is no request of the API. */
const NOTHING = { price: null, refusal: null, nearest: null, warning: null, ignored: [] };

function judgeRequest(app: App, target: string) {
  if (target.length > MAX_TARGET_SIZE) return { ...NOTHING, refusal: targetTooLong() };
  const request = readRequest({ method: "GET", target, appKey: app.key });
  if (isRefusal(request)) return { ...NOTHING, refusal: request };
  if (request.kind === "preflight") return NOTHING;
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const price = priceRequest(request, type);
  const plan = planRequest(request, type);
  const refusal = isRefusal(plan) ? plan : plan.kind === "entry" ? plan.refusal : null;
  return {
    price,
    refusal,
    nearest: price.counted && type !== undefined ? findNearestFree(request, type) : null,
    warning: findWarning(request, type),
    ignored: findIgnored(target, request, type),
  };
}

type PriceProps = {
  readonly app: App;
  readonly target: string;
  /** Takes the nearest free request. */
  readonly onTake: (target: string) => void;
};

export function Price({ app, target, onTake }: PriceProps) {
  const { price, refusal, nearest, warning, ignored } = judgeRequest(app, target);
  const vain = ignored.map(({ parameter, why }) => `${parameter}: ${why}`).join("; ");
  return (
    <section class="card price" aria-label="Price">
      <div role="status">
        <Line badge={price?.counted ? "Counted" : "Free"} kind={price?.counted ? "warn" : "good"} text={price?.rule} />
        <Line badge={refusal && `${findStatus(refusal)} ${refusal.code}`} kind="bad" text={refusal?.message} />
        <Line badge="Warning" kind="warn" text={warning} />
        <Line badge="Ignored" kind="warn" text={vain} />
      </div>
      {nearest === null ? null : (
        <p>
          <span class="badge good">Free</span> {nearest.same ? "The same answer:" : "The nearest free request:"}{" "}
          <code>{nearest.target}</code>{" "}
          <button type="button" onClick={() => onTake(nearest.target)}>
            Take it
          </button>
        </p>
      )}
    </section>
  );
}

type LineProps = { readonly badge: string | null; readonly kind: string; readonly text: string | null | undefined };

/** Nothing without a text. */
function Line({ badge, kind, text }: LineProps) {
  return text ? (
    <p>
      <span class={`badge ${kind}`}>{badge}</span> {text}
    </p>
  ) : null;
}
