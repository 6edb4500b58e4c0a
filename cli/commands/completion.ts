/** `precast completion`: prints a script with which a shell completes commands, options, and values that are known. */
import PACKAGE from "../../package.json" with { type: "json" };
import { COMMON_NAMES, ConfigError, SETTINGS } from "../../shared/config.ts";
import type { Setting } from "../../shared/settings/common.ts";
import { type Command, DONE, defineCommand, listArguments } from "../command.ts";

export const completionCommand = defineCommand({
  name: "completion",
  describes: "print a script with which bash, zsh or fish completes commands, options and their values",
  argument: "<shell>",
  values: () => Object.keys(SHELLS),
  settings: [],
  database: "unused",
  examples: ["precast completion bash > ~/.local/share/bash-completion/completions/precast"],
  details: () => `\nIn a start file of the shell:
  bash (~/.bashrc)                   source <(precast completion bash)
  zsh (~/.zshrc, behind compinit)    source <(precast completion zsh)
  fish (~/.config/fish/config.fish)  precast completion fish | source
`,
  run: async ({ terminal, loadCommands }, _settings, shell) => {
    if (!Object.hasOwn(SHELLS, shell))
      throw new ConfigError([`${JSON.stringify(shell)} must be one of ${Object.keys(SHELLS).join(", ")}`]);
    const commands = (await loadCommands()).map(describeCommand);
    const script = (SHELLS[shell] as WriteScript)([...commands, describeHelp(commands)]);
    terminal.result(script.trimEnd(), { shell, script });
    return DONE;
  },
});

type Completed = {
  readonly name: string;
  readonly describes: string;
  readonly options: readonly Option[];
  /** What the first argument can be; empty where that is not known. */
  readonly values: readonly string[];
  /** Whether there are arguments beside: they may be files. */
  readonly takesFiles: boolean;
};

type Option = {
  readonly flag: string;
  readonly describes: string;
  readonly takes: "nothing" | "folder" | "file" | "text" | readonly string[];
};

type WriteScript = (commands: readonly Completed[]) => string;

function describeCommand({ name, describes, argument, values = () => [], settings }: Command): Completed {
  const all: Setting[] = [...settings, ...COMMON_NAMES].map((setting) => SETTINGS[setting]);
  const options = [...all.flatMap(describeOption), HELP];
  const known = values();
  const others = listArguments({ argument }).slice(known.length > 0 ? 1 : 0);
  return { name, describes, options, values: known, takesFiles: others.length > 0 };
}

const HELP: Option = { flag: "--help", describes: "display help for command", takes: "nothing" };

function describeHelp(commands: readonly Completed[]): Completed {
  const values = commands.map(({ name }) => name);
  return { name: "help", describes: "display help for a command", options: [], values, takesFiles: false };
}

function describeOption({ flags, describes, schema }: Setting): Option[] {
  if (flags === null) return [];
  const [flag = "", value] = flags.split(" ");
  const [summary = ""] = describes.split(/[;:] /);
  const values = value === undefined ? [] : listValues(schema().def as Definition);
  if (values.length > 0) return [{ flag, describes: summary, takes: values }];
  const known = { undefined: "nothing", "<dir>": "folder", "<file>": "file" } as const;
  return [{ flag, describes: summary, takes: known[String(value) as keyof typeof known] ?? "text" }];
}

/** What the schemas of zod consist of, as far as it matters here. */
type Definition = {
  readonly entries?: Readonly<Record<string, string>>;
  readonly innerType?: { readonly def: Definition };
};

function listValues({ entries, innerType }: Definition): string[] {
  return innerType === undefined ? Object.values(entries ?? {}) : listValues(innerType.def);
}

/** In single quotes, in which a shell takes everything for itself. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Where nothing is offered, bash offers files, which names of folders and files need. */
function writeBash(commands: readonly Completed[]): string {
  const options = commands.flatMap(({ name, options }) =>
    options.map(({ flag, takes }) => ({ place: quote(`${name} ${flag}`), takes })),
  );
  const known = options.flatMap(({ place, takes }) => (Array.isArray(takes) ? [{ place, takes }] : []));
  const free = options.filter(({ takes }) => typeof takes === "string" && takes !== "nothing");
  const cases = known.map(({ place, takes }) => `    ${place}) words=${quote(takes.join(" "))} ;;\n`);
  const rest = commands.map(({ name, options, values, takesFiles }) => {
    const flags = options.map(({ flag }) => flag);
    const line = (place: string, words: readonly string[]) =>
      `        ${quote(`${name} `)}${place}) words=${quote(words.join(" "))} ;;\n`;
    return `${values.length > 0 ? line("2", values) : ""}${line(takesFiles ? "-" : "*", flags)}`;
  });
  const names = commands.map(({ name }) => name).join(" ");
  return `# Completes precast ${PACKAGE.version} in bash.
_precast() {
  local word=\${COMP_WORDS[COMP_CWORD]} words=''
  local place=$COMP_CWORD
  [[ $word == -* ]] && place=-
  case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD - 1]}" in
${cases.join("")}    ${free.map(({ place }) => place).join(" | ")}) ;;
    *)
      case "\${COMP_WORDS[1]} $place" in
        *' 1' | '-'*) words=${quote(`${names} --help --version`)} ;;
${rest.join("")}      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _precast precast
`;
}

function writeZsh(commands: readonly Completed[]): string {
  const plain = (text: string) => text.replace(/[\\[\]:]/g, "\\$&");
  const list = commands.map(({ name, describes }) => `      ${quote(`${name}:${plain(describes)}`)}\n`);
  const cases = commands.map(({ name, options, values, takesFiles }) => {
    const specs = options.map(({ flag, describes, takes }) => {
      const found = { nothing: "", folder: ":folder:_files -/", file: ":file:_files", text: ":value: " };
      const value = typeof takes === "string" ? found[takes] : `:value:(${takes.join(" ")})`;
      return `${flag}[${plain(describes)}]${value}`;
    });
    const first = values.length > 0 ? [`1:argument:(${values.join(" ")})`] : [];
    const all = [...specs, ...first, ...(takesFiles ? ["*:file:_files"] : [])].map(quote);
    return `    ${name}) _arguments ${all.join(" \\\n      ")} ;;\n`;
  });
  return `#compdef precast
# Completes precast ${PACKAGE.version} in zsh.
_precast() {
  if ((CURRENT == 2)); then
    local -a commands=(
${list.join("")}    )
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${cases.join("")}  esac
}
if [[ $funcstack[1] == _precast ]]; then _precast; else compdef _precast precast; fi
`;
}

function writeFish(commands: readonly Completed[]): string {
  const lines = commands.flatMap(({ name, describes, options, values, takesFiles }) => {
    const begin = (also = "") => `complete -c precast -n ${quote(`__fish_seen_subcommand_from ${name}${also}`)}`;
    const first = begin("; and test (count (commandline -opc)) -eq 2");
    const flags = options.map(({ flag, describes: text, takes }) => {
      const found = { nothing: "", folder: " -x -a '(__fish_complete_directories)'", file: " -r -F", text: " -x" };
      const value = typeof takes === "string" ? found[takes] : ` -x -a ${quote(takes.join(" "))}`;
      return `${begin()} -l ${flag.slice(2)}${value} -d ${quote(text)}`;
    });
    return [
      `complete -c precast -n __fish_use_subcommand -a ${name} -d ${quote(describes)}`,
      ...(values.length > 0 ? [`${first} -a ${quote(values.join(" "))}`] : []),
      ...(takesFiles ? [`${begin()} -F`] : []),
      ...flags,
    ];
  });
  return `# Completes precast ${PACKAGE.version} in fish.\ncomplete -c precast -f\n${lines.join("\n")}\n`;
}

const SHELLS: Readonly<Record<string, WriteScript>> = { bash: writeBash, zsh: writeZsh, fish: writeFish };
