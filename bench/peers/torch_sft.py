#!/usr/bin/env python3
"""PyTorch's own training of a causal language model, as the peer that ours is held against.

Trains a Hugging Face checkpoint on token blocks of one length, in the order of the file, and prints one JSON line from
rank 0. Row of step s, rank r, place b: (s * world + r) * batch + b, modulo the number of rows.

  torch_sft.py --strategy single --model DIR --blocks FILE
  torch_sft.py --strategy ddp|fsdp2 --ranks 2 --model DIR --blocks FILE [--adapter DIR | --lora-rank 16]

Starts its own ranks, on Gloo and CPU threads. No schedule, no weight decay; AdamW with PyTorch's defaults otherwise.
The losses are means over the targets of the global batch, in full precision.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True, help="Hugging Face folder")
    parser.add_argument("--blocks", required=True, help='JSONL of {"input_ids": [...]}, all of one length')
    parser.add_argument("--strategy", choices=("single", "ddp", "fsdp2"), default="single")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=2, help="rows a rank and step")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--max-grad-norm", type=float, default=0.0, help="0: no clipping")
    parser.add_argument("--lora-rank", type=int, default=0, help="0: full fine-tuning")
    parser.add_argument("--lora-alpha", type=float, help="default: twice the rank")
    parser.add_argument("--adapter", help="PEFT folder to start the adapter from, so that both sides start alike")
    parser.add_argument("--checkpointing", action="store_true", help="recompute activations, block by block")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    arguments = parser.parse_args()
    if (arguments.strategy == "single") != (arguments.ranks == 1):
        parser.error("--strategy single goes with --ranks 1, the others with more")
    return arguments


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(count):
    """Runs this program once for each rank; exits as the first rank that fails, and takes the others down with it."""
    port = str(free_port())
    ranks = []
    for rank in range(count):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    try:
        while any(rank.poll() is None for rank in ranks):
            failed = next((r.returncode for r in ranks if r.poll() not in (None, 0)), None)
            if failed is not None:
                return failed
            time.sleep(0.05)
        return max(rank.returncode for rank in ranks)
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.terminate()
            rank.wait()


def add_adapter(model, arguments, torch):
    from peft import LoraConfig, PeftModel, get_peft_model
    if arguments.adapter:
        return PeftModel.from_pretrained(model, arguments.adapter, is_trainable=True)
    torch.manual_seed(0)
    alpha = arguments.lora_alpha or 2 * arguments.lora_rank
    return get_peft_model(model, LoraConfig(r=arguments.lora_rank, lora_alpha=alpha, lora_dropout=0.0,
                                            target_modules="all-linear", task_type="CAUSAL_LM"))


def load_model(arguments, torch):
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32, attn_implementation="sdpa")
    model.config.use_cache = False
    blocks = model.model.layers
    if arguments.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if arguments.adapter or arguments.lora_rank:
        model = add_adapter(model, arguments, torch)
        for module in model.modules():  # a saved adapter may bring its own rate; the comparison is without dropout
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    model.train()
    return model, blocks


def parallelize(model, blocks, strategy, world, torch):
    if strategy == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if strategy == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (world,))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    return model


def read_blocks(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line)["input_ids"] for line in file]
    if len({len(row) for row in rows}) != 1:
        sys.exit(f"error: the rows of {path} are not all of one length")
    return rows


def train(model, rows, arguments, rank, world, torch):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=arguments.lr, weight_decay=0.0)
    losses, seconds, first_forward = [], [], None
    for step in range(arguments.steps):
        started = time.perf_counter()
        first = (step * world + rank) * arguments.batch
        ids = torch.tensor([rows[(first + place) % len(rows)] for place in range(arguments.batch)])
        first_forward = first_forward or time.time()
        loss = model(input_ids=ids, labels=ids).loss  # every rank has as many targets: the mean of means is the mean
        loss.backward()
        if arguments.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(trained, arguments.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total = loss.detach().double()
        if world > 1:
            torch.distributed.all_reduce(total)
        losses.append(total.item() / world)
        seconds.append(time.perf_counter() - started)
    return losses, seconds, first_forward


def process_start_seconds():
    """When this process was made, in Unix seconds (proc(5)): interpreter start-up counts as well."""
    with open("/proc/self/stat", encoding="ascii") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")


def largest(value, world, torch):
    tensor = torch.tensor([value], dtype=torch.float64)
    if world > 1:
        torch.distributed.all_reduce(tensor, op=torch.distributed.ReduceOp.MAX)
    return tensor.item()


def main():
    arguments = parse_arguments()
    if arguments.ranks > 1 and "RANK" not in os.environ:
        sys.exit(start_ranks(arguments.ranks))
    exec_time = process_start_seconds()

    import torch
    import torch.distributed

    torch.set_num_threads(arguments.threads)
    rank, world = int(os.environ.get("RANK", 0)), arguments.ranks
    if world > 1:
        torch.distributed.init_process_group("gloo")
    model, blocks = load_model(arguments, torch)
    model = parallelize(model, blocks, arguments.strategy, world, torch)
    rows = read_blocks(arguments.blocks)
    losses, seconds, first_forward = train(model, rows, arguments, rank, world, torch)

    peak_rss_mib = largest(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, world, torch)
    first_forward_s = largest(first_forward - exec_time, world, torch)
    if rank == 0:
        tokens = world * arguments.batch * len(rows[0])
        print(json.dumps({
            "peer": f"torch {torch.__version__}", "strategy": arguments.strategy, "ranks": world, "losses": losses,
            "tokens_per_s": tokens / statistics.median(seconds[1:] or seconds),
            "first_forward_s": first_forward_s, "peak_rss_mib": peak_rss_mib}), flush=True)
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
