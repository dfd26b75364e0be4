/** The bar at the top of the page: the product name, the user, and the colour scheme. */
import { type ReactNode, useState } from "react";
import type { Identity } from "../../src/client/mod.ts";
import { Icon } from "./icon.tsx";
import { PAGES, type PageName } from "./page_state.ts";
import { applyTheme, storedTheme, type Theme } from "./settings.ts";
import { strings } from "./strings.ts";

export interface HeaderProps {
  readonly identity: Identity | undefined;
  readonly page: PageName;
  readonly onPage: (page: PageName) => void;
  readonly onLogout: () => void;
}

export function Header({ identity, onLogout, onPage, page }: HeaderProps): ReactNode {
  const [theme, setTheme] = useState(storedTheme);
  return (
    <header className="top">
      <h1>
        <Icon name="tide" />
        {strings.product}
      </h1>
      <span className="host">{location.host}</span>
      {identity !== undefined && (
        <nav className="pages" aria-label={strings.header.pages}>
          {PAGES.map((name) => (
            <a
              key={name}
              href={`#/${name}`}
              aria-current={name === page ? "page" : undefined}
              onClick={(event) => {
                // With one of these modifier keys held down, the browser opens the address in a
                // new tab or window.
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                if (name !== page) onPage(name);
              }}
            >
              {strings.header[name]}
            </a>
          ))}
        </nav>
      )}
      <span className="spacer" />
      <label className="theme">
        <span className="hidden">{strings.header.theme}</span>
        <select
          value={theme}
          onChange={({ currentTarget }) => {
            const chosen = currentTarget.value as Theme;
            applyTheme(chosen);
            setTheme(chosen);
          }}
        >
          <option value="system">{strings.header.themes.system}</option>
          <option value="light">{strings.header.themes.light}</option>
          <option value="dark">{strings.header.themes.dark}</option>
        </select>
      </label>
      {identity !== undefined && (
        <>
          <span className="who" dir="auto">
            {strings.header.signedInAs(identity.user.id, identity.user.role)}
          </span>
          <button type="button" className="quiet" onClick={onLogout}>
            {strings.header.logout}
          </button>
        </>
      )}
    </header>
  );
}
