"""Plain HTTP from Python, with the standard library only: log in, write, read, follow.

    python3 examples/python/board.py
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("TIDEMARK_URL", "http://127.0.0.1:2900")


def post(path, body, token=None):
    """Sends JSON, and returns the JSON of the answer, of a refusal too."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def run(token, sql, *params):
    """Runs statements, and returns the rows of the last one as dictionaries."""
    answer = post("/v1/api/sql", {"sql": sql, "params": params}, token)
    if answer["status"] == "error":
        raise RuntimeError(f"{answer['error']['code']}: {answer['error']['message']}")
    entry = answer["results"][-1]
    names = [field["name"] for field in entry.get("schema", [])]
    return [dict(zip(names, row)) for row in entry.get("rows", [])]


def events(token, sql):
    """Yields the events of a live query: pairs of a name and its data."""
    query = urllib.parse.urlencode({"sql": sql})
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    request = urllib.request.Request(f"{URL}/v1/api/live?{query}", headers=headers)
    name, data = "", ""
    with urllib.request.urlopen(request) as stream:
        for raw in stream:
            line = raw.decode().rstrip("\r\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data += line.removeprefix("data: ")
            elif line == "" and data != "":
                yield name, json.loads(data)
                name, data = "", ""


def main():
    login = post("/v1/api/auth/login", {"user": "ada", "password": "correct horse 9"})
    token = login["access_token"]
    run(token, "CREATE NAMESPACE IF NOT EXISTS port")
    run(token, "CREATE TABLE IF NOT EXISTS port.tides (at TIMESTAMP PRIMARY KEY, metres DOUBLE)")
    run(token, "DELETE FROM port.tides WHERE true")
    run(token, "INSERT INTO port.tides VALUES ($1, $2)", "2026-11-29T04:12:00Z", 3.4)
    for row in run(token, "SELECT at, metres FROM port.tides"):
        print(f"high tide: {row['metres']} m")

    for name, data in events(token, "SELECT at, metres FROM port.tides"):
        if name == "initial_data_batch" and data["batch_control"]["status"] == "ready":
            print(f"{len(data['rows'])} row, and now live")
            run(token, "INSERT INTO port.tides VALUES ($1, $2)", "2026-11-29T16:37:00Z", 3.1)
        elif name == "change":
            print(f"{data['change_type']}: {data['rows'][0]['metres']} m")
            return
        elif name == "subscription_error":
            raise RuntimeError(data["message"])


if __name__ == "__main__":
    main()
