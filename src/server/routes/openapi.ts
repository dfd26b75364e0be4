/** Serves `GET /v1/openapi.json`, which describes every endpoint, including this one. */

import { apiHeaders, textResponse } from "../http/responses.ts";
import type { Route } from "../http/route.ts";
import type { Endpoints } from "../http/router.ts";
import { openApiText } from "../openapi/document.ts";
import { PROBE_OPERATIONS } from "../openapi/operations.ts";

export interface OpenApiRouteOptions {
  /**
   * Called at the first request rather than at startup, because the endpoints include this route.
   */
  readonly endpoints: () => Endpoints;
  readonly version: string;
  readonly mayCompress: boolean;
}

const HEADERS = apiHeaders("application/json; charset=utf-8");

export function openApiRoute({ endpoints, mayCompress, version }: OpenApiRouteOptions): Route {
  let made: { readonly basePath: string; readonly text: string } | undefined;
  return {
    path: "/v1/openapi.json",
    method: "GET",
    shape: "A",
    operation: PROBE_OPERATIONS.openapi,
    handle(exchange) {
      const { basePath } = exchange;
      if (made?.basePath !== basePath) {
        made = { basePath, text: openApiText(endpoints(), { basePath, version }) };
      }
      return textResponse(exchange, made.text, { status: 200, headers: HEADERS, mayCompress });
    },
  };
}
