// A version of the SDK that speaks another protocol is told so.
import { CopilotClient } from "@github/copilot-sdk";

await new CopilotClient({ cliPath: process.env.COPILOT_CLI_PATH }).start();
