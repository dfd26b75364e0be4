/**
 * Changes a row of the example every second while its live view is shown. New users thus see
 * changes arrive without opening a second window.
 */
import { useEffect, useState } from "react";
import { ConnectionError, ServerError } from "../../src/client/mod.ts";
import { db } from "./database.ts";
import { MOVE_MS, moveOf } from "./example.ts";

/**
 * Changes rows of the example at regular intervals.
 * @returns The reason why the changes have stopped, if a change was refused.
 */
export function useMoves(isOn: boolean): string | undefined {
  const [refusal, setRefusal] = useState<string>();
  useEffect(() => {
    if (!isOn) return undefined;
    let count = 0;
    let isUnderWay = false;
    const move = async (): Promise<void> => {
      if (isUnderWay) return;
      isUnderWay = true;
      const { params, sql } = moveOf(count);
      count += 1;
      try {
        await db.query(sql, params);
      } catch (error) {
        // If the server is unreachable, the view says so, and the changes continue when the server
        // is back.
        if (error instanceof ServerError) {
          clearInterval(timer);
          setRefusal(error.message);
        } else if (!(error instanceof ConnectionError)) throw error;
      } finally {
        isUnderWay = false;
      }
    };
    const timer = setInterval(() => void move(), MOVE_MS);
    void move();
    return () => clearInterval(timer);
  }, [isOn]);
  return refusal;
}
