//! A program ends after a signal, even if its runtime is blocked. Each test starts itself as the program to stop.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use runtime::Shutdown;
use rustix::process::{Pid, Signal, kill_process};

/// Set for the program that is to be stopped.
const IS_PROGRAM: &str = "AGENTDEX_TEST_PROGRAM";
/// Printed when signals are handled.
const READY: &str = "program is ready";
/// Longest time for the program to end on a busy machine; its drain time is far shorter.
const SOON: Duration = Duration::from_mins(1);

/// Starts this test again as the program, and waits until it handles signals.
fn start(test: &str) -> Child {
    let mut program = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(IS_PROGRAM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)), "the program ended before it was ready");
    program
}

fn terminate(program: &Child) {
    kill_process(Pid::from_child(program), Signal::TERM).unwrap();
}

/// The exit code; fails if the program does not end in time.
fn exit_code(mut program: Child) -> Option<i32> {
    let (sender, receiver) = channel();
    let waiting = std::thread::spawn(move || sender.send(program.wait().unwrap().code()).unwrap());
    let code = receiver.recv_timeout(SOON).expect("the program ends within its drain time");
    waiting.join().unwrap();
    code
}

fn print_ready() {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{READY}").unwrap();
    out.flush().unwrap();
}

#[test]
fn ends_with_a_blocked_runtime() {
    if env::var_os(IS_PROGRAM).is_some() {
        let _shutdown = Shutdown::on_signals(Duration::from_millis(200)).unwrap();
        let (runtime, _watchdog) = runtime::start().unwrap();
        runtime.block_on(async {
            print_ready();
            // blocks the thread, like a document that is parsed forever
            let (_never, blocked) = channel::<()>();
            blocked.recv().unwrap_or_default();
        });
        unreachable!("the sender is never used");
    }
    let program = start("ends_with_a_blocked_runtime");
    terminate(&program);
    assert_eq!(exit_code(program), Some(1));
}

#[test]
fn the_first_signal_requests_a_soft_stop_and_the_second_a_hard_one() {
    if env::var_os(IS_PROGRAM).is_some() {
        let shutdown = Shutdown::on_signals(SOON).unwrap();
        let (runtime, _watchdog) = runtime::start().unwrap();
        runtime.block_on(async {
            print_ready();
            shutdown.soft.cancelled().await;
            assert!(!shutdown.hard.is_cancelled());
            print_ready();
            shutdown.hard.cancelled().await;
        });
        return;
    }
    let mut program = start("the_first_signal_requests_a_soft_stop_and_the_second_a_hard_one");
    terminate(&program);
    let mut lines = BufReader::new(program.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)), "the first signal is handled");
    terminate(&program);
    assert_eq!(exit_code(program), Some(0));
}
